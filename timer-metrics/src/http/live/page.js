"use strict";
const PERIOD = 1000;
const PATIENCE = 4000;
const TREND_POINTS = 121;
const ROWS = [
  ["scheduled", "scheduled"],
  ["expired", "expired"],
  ["cancelled", "cancelled"],
  ["rejected", "rejected", "fault"],
  ["task_panics", "panics", "fault"],
  ["executor_rejections", "executor rejections", "fault"],
];
// Decades on the axis of a histogram, by the index of their bucket bound.
const DECADES = { 0: "10 µs", 3: "100 µs", 6: "1 ms", 9: "10 ms", 12: "100 ms", 15: "1 s", 18: "10 s" };

const find = (id) => document.getElementById(id);
const cards = new Map();
let stats = null;
let poll = null;
let asking = false;
let goneSince = null;
let span = "minute";

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en-US", { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const compact = new Intl.NumberFormat("en-US", { notation: "compact", maximumSignificantDigits: 4 });

function number(value, limit = 1e9) {
  return value < limit ? whole.format(value) : compact.format(value);
}

function rate(window, name) {
  if (!window) return "–";
  const value = window[name];
  return value > 0 && value < 9.95 ? tenths.format(value) : number(value, 1e6);
}

function duration(seconds) {
  const [factor, unit] = seconds >= 1 ? [1, "s"] : seconds >= 1e-3 ? [1e3, "ms"] : seconds >= 1e-6 ? [1e6, "µs"] : [1e9, "ns"];
  return `${Number((seconds * factor).toPrecision(3))} ${unit}`;
}

function svg(name, attributes, text) {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
  if (text !== undefined) element.textContent = text;
  return element;
}

function newCard(label) {
  const section = find("card").content.firstElementChild.cloneNode(true);
  section.dataset.timer = label;
  section.querySelector("h2").textContent = label === "" ? "(no name)" : label;
  const body = section.querySelector("tbody");
  for (const [name, title] of ROWS) {
    const row = body.insertRow();
    row.dataset.row = name;
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = title;
    row.append(head);
    for (let column = 0; column < 3; column += 1) row.insertCell();
  }
  return { section, trend: [] };
}

function show(card, timer) {
  const field = (name) => card.section.querySelector(`[data-field="${name}"]`);
  field("pending").textContent = number(timer.pending);
  field("pending").title = whole.format(timer.pending);
  field("queued").textContent = number(timer.tasks_queued);
  field("running").textContent = number(timer.tasks_running);
  field("second").textContent = timer.last_second ? `${tenths.format(timer.last_second.seconds)} s` : "1 s";
  field("minute").textContent = timer.last_minute ? `${whole.format(timer.last_minute.seconds)} s` : "60 s";
  for (const [name, , kind] of ROWS) {
    const row = card.section.querySelector(`[data-row="${name}"]`);
    row.cells[1].textContent = rate(timer.last_second, name);
    row.cells[2].textContent = rate(timer.last_minute, name);
    row.cells[3].textContent = number(timer[name], 1e6);
    row.cells[3].title = whole.format(timer[name]);
    row.className = kind && timer[name] > 0 ? kind : "";
  }
  showBound(card.section, field("bound"), timer);
  showTrend(card, field("trend"));
  for (const figure of card.section.querySelectorAll("figure")) showLag(figure, timer);
}

function showBound(section, note, timer) {
  const meter = section.querySelector(".meter");
  meter.hidden = !timer.max_pending;
  if (!timer.max_pending) {
    note.textContent = "no bound";
    return;
  }
  const share = timer.pending / timer.max_pending;
  meter.dataset.level = share >= 0.9 ? "full" : share >= 0.75 ? "high" : "low";
  meter.firstElementChild.style.width = `${Math.min(100, share * 100)}%`;
  const percent = share > 0 && share < 0.1 ? tenths.format(share * 100) : whole.format(share * 100);
  note.textContent = `${percent}% of the bound of ${number(timer.max_pending)}`;
}

function showTrend(card, note) {
  const points = card.trend;
  const chart = card.section.querySelector(".trend");
  const now = points[points.length - 1].at;
  const seconds = Math.max(10, (now - points[0].at) / 1000);
  const top = Math.max(1, ...points.map((point) => point.pending)) * 1.08;
  chart.setAttribute("viewBox", "0 0 100 40");
  const place = (point) => `${(100 - (now - point.at) / seconds / 10).toFixed(2)},${(40 - (point.pending / top) * 40).toFixed(2)}`;
  const line = points.map(place).join("L");
  chart.querySelector(".line").setAttribute("d", `M${line}`);
  const begin = place(points[0]).split(",")[0];
  chart.querySelector(".area").setAttribute("d", `M${begin},40L${line}L100,40Z`);
  const [low, high] = [Math.min, Math.max].map((pick) => number(pick(...points.map((point) => point.pending))));
  note.textContent = `${low} to ${high} in the last ${whole.format(Math.max(1, (now - points[0].at) / 1000))} s`;
  chart.setAttribute("aria-label", `pending: ${note.textContent}`);
}

function quantile(counts, total, share) {
  let seen = 0;
  for (const [index, count] of counts.entries()) {
    seen += count;
    if (seen >= total * share) {
      const bound = stats.lag_bounds_seconds[index];
      return bound === undefined ? "> 10 s" : `≤ ${duration(bound)}`;
    }
  }
  return "–";
}

function showLag(figure, timer) {
  const lag = timer[figure.dataset.lag];
  const counts = span === "minute" ? lag.last_minute ?? lag.counts.map(() => 0) : lag.counts;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const parts = total === 0
    ? [span === "minute" ? "no task in the last minute" : "no task yet"]
    : [`${number(total)} tasks`, `p50 ${quantile(counts, total, 0.5)}`, `p99 ${quantile(counts, total, 0.99)}`];
  if (total > 0 && span === "total") parts.push(`max ${duration(lag.max_seconds)}`);
  figure.querySelector("span").textContent = parts.map((part) => part.replaceAll(" ", "\u00a0")).join(" · ");
  const chart = figure.querySelector("svg");
  const caption = figure.querySelector("b").textContent;
  chart.setAttribute("aria-label", `${caption}: ${parts.join(", ")}`);
  drawBars(chart, counts, total);
}

function drawBars(chart, counts, total) {
  const { width, height: full } = chart.getBoundingClientRect();
  const [left, right, top] = [38, 14, 8];
  const height = full - top - 20;
  const greatest = total === 0 ? 1 : Math.max(...counts) / total;
  const limit = [0.1, 0.2, 0.4, 0.6, 0.8, 1].find((limit) => greatest <= limit);
  const shapes = [];
  for (const share of [0, 0.5, 1]) {
    const y = top + height - share * height;
    shapes.push(svg("line", { class: "grid", x1: left, x2: width - right, y1: y, y2: y }));
    shapes.push(svg("text", { x: left - 6, y: y + 4, "text-anchor": "end" }, `${Number((share * limit * 100).toPrecision(2))}%`));
  }
  const step = (width - left - right) / counts.length;
  for (const [index, count] of counts.entries()) {
    if (count === 0) continue;
    const tall = Math.max(2, (count / total / limit) * height);
    const bar = svg("rect", { class: "bar", x: left + index * step + 1, y: top + height - tall, width: step - 2, height: tall, rx: 1.5 });
    const bound = stats.lag_bounds_seconds[index];
    const range = bound === undefined ? "above 10 s" : `up to ${duration(bound)}`;
    bar.append(svg("title", {}, `${range}: ${whole.format(count)} (${((count / total) * 100).toPrecision(2)}%)`));
    shapes.push(bar);
  }
  for (const [index, text] of Object.entries(DECADES)) {
    const x = left + (Number(index) + 1) * step;
    shapes.push(svg("line", { class: "grid", x1: x, x2: x, y1: top + height, y2: top + height + 4 }));
    shapes.push(svg("text", { x, y: top + height + 16, "text-anchor": "middle" }, text));
  }
  chart.replaceChildren(...shapes);
}

function showAll() {
  find("process").textContent = `${stats.program} · process ${stats.pid}`;
  document.title = `Timers · ${stats.program}`;
  find("labels").replaceChildren(...Object.entries(stats.labels).map(([name, value]) => {
    const item = document.createElement("li");
    item.textContent = `${name}: ${value}`;
    return item;
  }));
  for (const timer of stats.timers) show(cards.get(timer.timer), timer);
  find("empty").hidden = stats.timers.length > 0;
}

// Adds and removes cards as timers come and go, and adds a point to each trend.
function receive(reply) {
  stats = reply;
  const at = performance.now();
  const living = new Set(stats.timers.map((timer) => timer.timer));
  for (const [label, card] of cards) {
    if (!living.has(label)) {
      card.section.remove();
      cards.delete(label);
    }
  }
  for (const timer of stats.timers) {
    if (!cards.has(timer.timer)) {
      cards.set(timer.timer, newCard(timer.timer));
      find("timers").append(cards.get(timer.timer).section);
    }
    const card = cards.get(timer.timer);
    card.trend.push({ at, pending: timer.pending });
    if (card.trend.length > TREND_POINTS) card.trend.shift();
  }
}

function setState(state, text) {
  find("state").dataset.state = state;
  find("state").textContent = text;
  document.body.classList.toggle("stale", state === "gone");
}

async function ask() {
  asking = true;
  try {
    const reply = await fetch("stats.json", { cache: "no-store", signal: AbortSignal.timeout(PATIENCE) });
    if (!reply.ok) throw new Error(`the server answers with status ${reply.status}`);
    receive(await reply.json());
    showAll();
    goneSince = null;
    find("alarm").hidden = true;
    setState("live", "Live");
  } catch (error) {
    goneSince ??= new Date();
    const reason = error.message.startsWith("the server") ? error.message : "the server does not answer";
    const figures = stats ? " The figures below are the last ones that it sent." : "";
    find("alarm").textContent = `Since ${goneSince.toLocaleTimeString()} ${reason}.${figures} This page asks again every second.`;
    find("alarm").hidden = false;
    setState("gone", "Server gone");
  }
  asking = false;
  continueIn(PERIOD);
}

// Asks again after a delay, or pauses while nobody sees the page.
function continueIn(delay) {
  clearTimeout(poll);
  if (document.hidden) {
    if (!goneSince) setState("paused", "Paused");
  } else if (!asking) {
    poll = setTimeout(ask, delay);
  }
}

document.addEventListener("visibilitychange", () => continueIn(0));

for (const input of document.querySelectorAll("input[name=span]")) {
  input.addEventListener("change", () => {
    span = input.value;
    if (stats) showAll();
  });
}
ask();

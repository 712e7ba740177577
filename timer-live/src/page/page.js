"use strict";
const POLL_PERIOD = 1000;
const REPLY_TIMEOUT = 4000;
const TREND_POINTS = 121;
// For each kind of card: the rows of the table, the unit of a histogram, the name of its bounds, and
// the labels of its axis by the index of a bound.
const KINDS = {
  timers: {
    rows: [
      ["scheduled", "scheduled"],
      ["expired", "expired"],
      ["cancelled", "cancelled"],
      ["rejected", "rejected", "fault"],
      ["task_panics", "panics", "fault"],
      ["executor_rejections", "executor rejections", "fault"],
    ],
    units: { timeout_lag: "task", start_lag: "task" },
    bounds: "lag_bounds_seconds",
    ticks: { 0: "10 µs", 3: "100 µs", 6: "1 ms", 9: "10 ms", 12: "100 ms", 15: "1 s", 18: "10 s" },
  },
  durable: {
    rows: [
      ["scheduled", "scheduled"],
      ["cancelled", "cancelled"],
      ["begun", "attempts begun"],
      ["done", "attempts done"],
      ["failed", "attempts failed"],
      ["retried", "attempts repeated"],
      ["postponed", "attempts postponed"],
      ["timed_out", "attempts cut off", "fault"],
      ["expired", "too late to begin", "fault"],
      ["buried", "dead letters", "fault"],
      ["without_handler", "topic without handler", "fault"],
      ["commits", "commits"],
      ["store_errors", "store errors", "fault"],
      ["rejoins", "joined again", "fault"],
    ],
    units: { lag: "attempt", commit_time: "commit" },
    bounds: "durable_bounds_seconds",
    ticks: { 0: "100 µs", 3: "1 ms", 6: "10 ms", 9: "100 ms", 12: "1 s", 15: "10 s", 17: "1 min" },
  },
};
const NODE = [
  ["name", "name"],
  ["instance", "instance"],
  ["shards", "shards owned"],
  ["nodes", "nodes alive"],
  ["taken_over", "shards taken over"],
  ["lease_age_seconds", "age of the lease"],
  ["foreign", "timeouts from others"],
  ["reconnects", "reconnects"],
];

// The parts of a timetable, and the name of a step in each.
const COMING = { minute: "second", hour: "minute", day: "15 minutes" };

const find = (id) => document.getElementById(id);
const cards = new Map();
let stats = null;
let poll = null;
let asking = false;
let faultSince = null;
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

function newCard(kind, label) {
  const section = find(`${kind}-card`).content.firstElementChild.cloneNode(true);
  section.dataset.timer = label;
  section.dataset.kind = kind;
  section.querySelector("h2").textContent = label === "" ? "(no name)" : label;
  const body = section.querySelector("tbody");
  for (const [name, title] of KINDS[kind].rows) {
    const row = body.insertRow();
    row.dataset.row = name;
    const head = document.createElement("th");
    head.scope = "row";
    head.textContent = title;
    row.append(head);
    for (let column = 0; column < 3; column += 1) row.insertCell();
  }
  const card = { kind: KINDS[kind], section, trend: [] };
  if (kind === "durable") prepareActions(card);
  return card;
}

function show(card, timer) {
  const field = (name) => card.section.querySelector(`[data-field="${name}"]`);
  const put = (name, value) => {
    field(name).textContent = value === null ? "–" : number(value);
    field(name).title = value === null ? "not known" : whole.format(value);
  };
  put("pending", timer.pending);
  field("second").textContent = timer.last_second ? `${tenths.format(timer.last_second.seconds)} s` : "1 s";
  field("minute").textContent = timer.last_minute ? `${whole.format(timer.last_minute.seconds)} s` : "60 s";
  for (const [name, , kind] of card.kind.rows) {
    const row = card.section.querySelector(`[data-row="${name}"]`);
    row.cells[1].textContent = rate(timer.last_second, name);
    row.cells[2].textContent = rate(timer.last_minute, name);
    row.cells[3].textContent = number(timer[name], 1e6);
    row.cells[3].title = whole.format(timer[name]);
    row.className = kind && timer[name] > 0 ? kind : "";
  }
  if (card.kind === KINDS.timers) {
    put("queued", timer.tasks_queued);
    put("running", timer.tasks_running);
    showBound(card.section, field("bound"), timer);
    field("expected").textContent = `expected lag ${duration(timer.timetable.expected_lag_seconds)}`;
  } else {
    field("store").textContent = timer.is_stopped ? `${timer.store}, stopped` : timer.store;
    for (const name of ["in_memory", "due", "running"]) put(name, timer[name]);
    showNode(card.section.querySelector(".node"), timer.node);
    showTopics(card, timer);
  }
  showComing(card.section.querySelector(".coming"), timer.timetable);
  showWorst(card.section.querySelector(".worst"), timer.worst);
  showTrend(card, field("trend"));
  for (const figure of card.section.querySelectorAll("figure")) showLag(card.kind, figure, timer);
}

// Returns a `div` with a name and a description, for a list of them.
function pair(name, text) {
  const [pair, head, value] = ["div", "dt", "dd"].map((tag) => document.createElement(tag));
  head.textContent = name;
  value.textContent = text;
  pair.append(head, value);
  return pair;
}

// The causes are listed from the largest part to the smallest that has at least 1 %.
function showWorst(part, worst) {
  part.hidden = worst.length === 0;
  part.querySelector("dl").replaceChildren(...worst.map((run) => {
    const causes = Object.entries(run.lateness_seconds).sort((one, other) => other[1] - one[1]);
    const total = causes.reduce((sum, [, seconds]) => sum + seconds, 0);
    const split = causes.filter(([, seconds]) => seconds * 100 >= total).map(([cause, seconds]) => `${cause} ${duration(seconds)}`);
    const behind = run.behind ? ` · behind ${run.behind}` : "";
    const name = run.task ?? (run.key === null ? run.topic : `${run.topic} · ${run.key}`);
    return pair(name, `${duration(total)} late, ${duration(run.age_seconds)} ago: ${split.join(" + ")}${behind}`);
  }));
}

function showNode(part, node) {
  part.hidden = !node;
  if (!node) return;
  const text = (name) => {
    if (node[name] === null) return "–";
    if (name === "lease_age_seconds") return duration(node[name]);
    return name === "name" || name === "instance" ? node[name] : whole.format(node[name]);
  };
  part.querySelector("dl").replaceChildren(...NODE.map(([name, title]) => {
    const item = pair(title, text(name));
    item.dataset.node = name;
    return item;
  }));
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
  chart.toggleAttribute("hidden", points.length === 0);
  if (points.length === 0) {
    note.textContent = "the store is being counted, or does not know the number";
    return;
  }
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

function showComing(part, timetable) {
  for (const [name, step] of Object.entries(COMING)) {
    const [chart, note] = part.querySelector(`[data-due="${name}"]`).children;
    const counts = timetable[name] ?? [];
    const top = Math.max(0, ...counts);
    const curve = counts.map((count, index) => `V${(39 - (count / Math.max(1, top)) * 38).toFixed(2)}H${index + 1}`).join("");
    chart.setAttribute("viewBox", `0 0 ${Math.max(1, counts.length)} 40`);
    chart.querySelector(".line").setAttribute("d", `M0,39${curve}`);
    chart.querySelector(".area").setAttribute("d", `M0,40${curve}V40Z`);
    const total = counts.reduce((sum, count) => sum + count, 0);
    note.textContent = timetable[name] ? `${name}: ${number(total)}, up to ${number(top)} per ${step}` : `${name}: not counted`;
    chart.setAttribute("aria-label", `due: ${note.textContent}`);
  }
}

function quantile(bounds, counts, total, share) {
  let seen = 0;
  for (const [index, count] of counts.entries()) {
    seen += count;
    if (seen >= total * share) {
      return index < bounds.length ? `≤ ${duration(bounds[index])}` : `> ${duration(bounds.at(-1))}`;
    }
  }
  return "–";
}

function showLag(kind, figure, timer) {
  const [bounds, unit] = [stats[kind.bounds], kind.units[figure.dataset.lag]];
  const lag = timer[figure.dataset.lag];
  const counts = span === "minute" ? lag.last_minute ?? lag.counts.map(() => 0) : lag.counts;
  const total = counts.reduce((sum, count) => sum + count, 0);
  const parts = total === 0
    ? [span === "minute" ? `no ${unit} in the last minute` : `no ${unit} yet`]
    : [`${number(total)} ${unit}s`, `p50 ${quantile(bounds, counts, total, 0.5)}`, `p99 ${quantile(bounds, counts, total, 0.99)}`];
  if (total > 0 && span === "total") parts.push(`max ${duration(lag.max_seconds)}`);
  figure.querySelector("span").textContent = parts.map((part) => part.replaceAll(" ", "\u00a0")).join(" · ");
  const chart = figure.querySelector("svg");
  const caption = figure.querySelector("b").textContent;
  chart.setAttribute("aria-label", `${caption}: ${parts.join(", ")}`);
  drawBars(chart, kind, counts, total);
}

function drawBars(chart, kind, counts, total) {
  const bounds = stats[kind.bounds];
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
    const range = index < bounds.length ? `up to ${duration(bounds[index])}` : `above ${duration(bounds.at(-1))}`;
    bar.append(svg("title", {}, `${range}: ${whole.format(count)} (${Number(((count / total) * 100).toPrecision(2))}%)`));
    shapes.push(bar);
  }
  for (const [index, text] of Object.entries(kind.ticks)) {
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
  const all = timersOf(stats);
  for (const [kind, timer] of all) show(cards.get(`${kind} ${timer.timer}`), timer);
  find("empty").hidden = all.length > 0;
}

function timersOf(reply) {
  return Object.keys(KINDS).flatMap((kind) => (reply[kind] ?? []).map((timer) => [kind, timer]));
}

// Adds and removes cards as timers come and go, and adds a point to each trend.
function receive(reply) {
  stats = reply;
  const at = performance.now();
  const all = timersOf(stats);
  const living = new Set(all.map(([kind, timer]) => `${kind} ${timer.timer}`));
  for (const [key, card] of cards) {
    if (!living.has(key)) {
      card.section.remove();
      cards.delete(key);
    }
  }
  for (const [kind, timer] of all) {
    const key = `${kind} ${timer.timer}`;
    if (!cards.has(key)) {
      cards.set(key, newCard(kind, timer.timer));
      find("timers").append(cards.get(key).section);
    }
    const { trend } = cards.get(key);
    if (timer.pending !== null) trend.push({ at, pending: timer.pending });
    if (trend.length > TREND_POINTS) trend.shift();
  }
}

function setState(state, text) {
  find("state").dataset.state = state;
  find("state").textContent = text;
  document.body.classList.toggle("stale", state === "gone" || state === "failed");
}

// The error of a server that does not send figures. Any other error is a fault of this page.
class ServerError extends Error {}

async function fetchStats() {
  const fail = (reason) => {
    throw new ServerError(`the server ${reason}`);
  };
  const options = { cache: "no-store", signal: AbortSignal.timeout(REPLY_TIMEOUT) };
  const reply = await fetch("stats.json", options).catch(() => fail("does not answer"));
  if (!reply.ok) fail(`answers with status ${reply.status}`);
  return reply.json().catch((error) => fail(error instanceof SyntaxError ? "answers without figures" : "does not answer"));
}

async function ask() {
  asking = true;
  try {
    receive(await fetchStats());
    showAll();
    faultSince = null;
    find("alarm").hidden = true;
    setState("live", "Live");
  } catch (error) {
    showFault(error);
  }
  asking = false;
  continueIn(POLL_PERIOD);
}

function showFault(error) {
  const isOwn = !(error instanceof ServerError);
  if (isOwn) console.error(error);
  const [state, title] = isOwn ? ["failed", "Page error"] : ["gone", "Server gone"];
  if (find("state").dataset.state !== state) faultSince = new Date();
  const reason = isOwn ? `this page cannot show the figures, because its script fails (${error})` : error.message;
  const age = isOwn ? "may be old" : "are the last ones that it sent";
  const figures = stats ? ` The figures below ${age}.` : "";
  find("alarm").textContent = `Since ${faultSince.toLocaleTimeString()} ${reason}.${figures} This page asks again every second.`;
  find("alarm").hidden = false;
  setState(state, title);
}

// Asks again after a delay, or pauses while nobody sees the page.
function continueIn(delay) {
  clearTimeout(poll);
  if (document.hidden) {
    if (!faultSince) setState("paused", "Paused");
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

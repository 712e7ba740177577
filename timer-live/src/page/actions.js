// The topics and timeouts of a durable timer, and the actions on them, if the server allows actions.

// The rows stay where they are while the topics are the same, so that a click meets its button.
function showTopics(card, timer) {
  const hasActions = stats.has_actions && !timer.is_stopped;
  card.section.querySelector(".actions").hidden = !hasActions;
  const part = card.section.querySelector(".topics");
  part.hidden = timer.topics.length === 0;
  const names = JSON.stringify(timer.topics.map(({ topic }) => topic));
  if (part.dataset.names !== names) part.tBodies[0].replaceChildren(...timer.topics.map(({ topic }) => newTopic(card, topic)));
  part.dataset.names = names;
  for (const [index, topic] of timer.topics.entries()) {
    const [head, ...cells] = part.tBodies[0].rows[index].cells;
    const [, note, button] = head.children;
    const waits = topic.oldest_due_seconds > 0 ? `due for ${duration(topic.oldest_due_seconds)}` : "";
    note.textContent = [topic.is_paused ? "paused" : "", waits].filter((text) => text !== "").join(", ");
    [button.dataset.action, button.textContent] = topic.is_paused ? ["resume", "Resume"] : ["pause", "Pause"];
    button.hidden = !hasActions;
    const total = topic.lag_counts.reduce((sum, count) => sum + count, 0);
    const late = total === 0 ? "–" : quantile(stats.durable_bounds_seconds, topic.lag_counts, total, 0.99);
    const counts = [topic.due_in_hour, topic.running, topic.done, topic.failed, topic.buried];
    const texts = counts.map((count) => count === null ? "–" : number(count, 1e6));
    for (const [column, text] of [...texts, late].entries()) cells[column].textContent = text;
  }
}

function newTopic(card, topic) {
  const row = document.createElement("tr");
  row.dataset.topic = topic;
  const [head, name, note, button] = ["th", "span", "span", "button"].map((tag) => document.createElement(tag));
  head.scope = "row";
  name.textContent = topic;
  note.className = "note";
  button.addEventListener("click", () => act(card, button.dataset.action, topic, { topic }));
  head.append(name, note, button);
  row.append(head);
  for (let column = 0; column < 6; column += 1) row.insertCell();
  return row;
}

// The list of timeouts is read from the store when the user asks for it, and after an action.
function prepareActions(card) {
  const part = card.section.querySelector(".actions");
  part.addEventListener("toggle", () => part.open && showTimeouts(card));
  part.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    showTimeouts(card);
  });
  for (const button of part.querySelectorAll("[data-action]")) {
    button.addEventListener("click", () => act(card, button.dataset.action, "the dead letters", narrowed(card)));
  }
}

// Returns the parameters that narrow the list down.
function narrowed(card) {
  return Object.fromEntries(new FormData(card.section.querySelector(".actions form")));
}

function say(card, text, isFault) {
  const answer = card.section.querySelector(".answer");
  answer.textContent = text;
  answer.classList.toggle("fault", isFault);
  answer.hidden = text === "";
}

// Returns the text of a reply of the server, or says why there is none.
async function request(card, path, parameters, options) {
  const query = new URLSearchParams({ timer: card.section.dataset.timer, ...parameters });
  try {
    const reply = await fetch(`${path}?${query}`, { cache: "no-store", signal: AbortSignal.timeout(30_000), ...options });
    const text = (await reply.text()).trim();
    if (reply.ok) return text;
    say(card, `Failed: ${text}`, true);
  } catch (error) {
    say(card, `Failed, or the outcome is unknown: ${error.message}`, true);
  }
  return null;
}

async function act(card, action, name, parameters) {
  const question = { cancel: "Cancel", purge: "Delete", "purge-all": "Delete" }[action];
  if (question !== undefined && !confirm(`${question} ${name}?`)) return;
  say(card, "", false);
  const answer = await request(card, `actions/${action}`, parameters, { method: "POST", headers: { "Timer-Action": "page" } });
  if (answer !== null) say(card, `${name}: ${answer}`, false);
  if (card.section.querySelector(".actions").open) await showTimeouts(card);
}

async function showTimeouts(card) {
  const part = card.section.querySelector(".actions");
  const text = await request(card, "timeouts.json", narrowed(card), {});
  if (text === null) return;
  const { pending, dead } = JSON.parse(text);
  // Returns an item of the list, with a button for each action.
  const item = (name, text, actions, parameters) => {
    const item = pair(name, text);
    for (const [action, title] of actions) {
      const button = document.createElement("button");
      [button.dataset.action, button.textContent] = [action, title];
      button.addEventListener("click", () => act(card, action, name, parameters));
      item.append(button);
    }
    return item;
  };
  const nameOf = (row) => `${row.topic} ${row.key ?? row.id}`;
  const attempts = (row) => (row.attempt > 0 ? `, attempt ${row.attempt}` : "");
  const items = [
    ...dead.map((row) => {
      const actions = [["requeue", "Requeue"], ...(row.key === null ? [] : [["requeue-without-key", "Requeue without key"]]), ["purge", "Purge"]];
      return item(nameOf(row), `dead for ${duration(-row.died_in_seconds)}${attempts(row)}: ${row.reason}`, actions, { id: row.id });
    }),
    ...pending.map((row) => {
      const due = row.due_in_seconds >= 0 ? `due in ${duration(row.due_in_seconds)}` : `due for ${duration(-row.due_in_seconds)}`;
      const actions = row.state === "running" ? [] : [["run", "Run now"], ["cancel", "Cancel"]];
      return item(nameOf(row), `${row.state}, ${due}${attempts(row)}`, actions, { id: row.id });
    }),
  ];
  part.querySelector("dl").replaceChildren(...items);
}

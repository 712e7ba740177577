// The timeouts of a durable timer, and the actions on them, if the server allows actions. The list is
// read from the store, so it is read when the user asks for it and after an action.
function prepareActions(card) {
  const part = card.section.querySelector(".actions");
  part.addEventListener("toggle", () => part.open && showTimeouts(card));
  part.querySelector("form").addEventListener("submit", (event) => {
    event.preventDefault();
    showTimeouts(card);
  });
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
  if (action === "cancel" && !confirm(`Cancel ${name}?`)) return;
  say(card, "", false);
  const answer = await request(card, `actions/${action}`, parameters, { method: "POST", headers: { "Timer-Action": "page" } });
  if (answer !== null) say(card, `${name}: ${answer}`, false);
  await showTimeouts(card);
}

async function showTimeouts(card) {
  const part = card.section.querySelector(".actions");
  const text = await request(card, "timeouts.json", Object.fromEntries(new FormData(part.querySelector("form"))), {});
  if (text === null) return;
  const { paused, pending, dead } = JSON.parse(text);
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
  const topics = [...new Set([...paused, ...[...pending, ...dead].map((row) => row.topic)])].sort();
  const items = [
    ...topics.map((topic) => {
      const isPaused = paused.includes(topic);
      return item(topic, isPaused ? "topic, paused" : "topic", [isPaused ? ["resume", "Resume"] : ["pause", "Pause"]], { topic });
    }),
    ...dead.map((row) =>
      item(nameOf(row), `dead for ${duration(-row.died_in_seconds)}${attempts(row)}: ${row.reason}`, [["requeue", "Requeue"]], { id: row.id })),
    ...pending.map((row) => {
      const due = row.due_in_seconds >= 0 ? `due in ${duration(row.due_in_seconds)}` : `due for ${duration(-row.due_in_seconds)}`;
      const actions = row.state === "running" ? [] : [["run", "Run now"], ["cancel", "Cancel"]];
      return item(nameOf(row), `${row.state}, ${due}${attempts(row)}`, actions, { id: row.id });
    }),
  ];
  part.querySelector("dl").replaceChildren(...items);
}

// Keys, and what comes while a conversation is open. Every page works without this.
"use strict";

const items = () => [...document.querySelectorAll("[data-item], .messages > .message")];
let current = -1;

function move(step) {
  const all = items();
  if (!all.length) return;
  current = Math.min(Math.max(current + step, 0), all.length - 1);
  all.forEach((each, place) => each.classList.toggle("current", place === current));
  all[current].scrollIntoView({ block: "nearest" });
}

const keys = {
  "/": () => document.getElementById("find")?.focus(),
  j: () => move(1),
  k: () => move(-1),
  n: () => document.querySelector("a[rel=next]")?.click(),
  p: () => document.querySelector("a[rel=prev]")?.click(),
  Enter: () => items()[current]?.querySelector("[data-open], header a")?.click(),
};

document.addEventListener("keydown", (event) => {
  if (event.key === "Escape") return document.activeElement?.blur();
  const typing = event.target.closest("input, textarea, select, a, button, summary");
  if (typing || event.ctrlKey || event.metaKey || event.altKey || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});

// What is sent of all messages may be another with each new one; many at once are one.
async function loadAnew(head) {
  const place = new URL(location);
  if (head && place.searchParams.has("to")) place.searchParams.set("to", head);
  history.replaceState(null, "", place);
  if (head) await new Promise((done) => setTimeout(done, 2000));
  location.reload();
}

async function follow(messages) {
  const drafts = document.getElementById("drafts");
  let { live, from, branch, state, mode } = messages.dataset;
  for (;;) {
    const query = new URLSearchParams({ from, branch, state, mode });
    const answer = await fetch(`${live}?${query}`).catch(() => null);
    if (answer?.status === 205) return loadAnew(answer.headers.get("x-head"));
    if (!answer?.ok) {
      await new Promise((done) => setTimeout(done, 5000));
      continue;
    }
    const atEnd = innerHeight + scrollY >= document.body.scrollHeight - 80;
    const news = new DOMParser().parseFromString(await answer.text(), "text/html");
    messages.append(...news.getElementById("new").children);
    drafts.replaceChildren(...news.getElementById("drafts").children);
    from = answer.headers.get("x-next");
    state = answer.headers.get("x-state");
    if (atEnd) scrollTo(0, document.body.scrollHeight);
  }
}

const messages = document.querySelector("[data-live]");
if (messages) follow(messages);

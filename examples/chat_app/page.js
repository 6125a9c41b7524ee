"use strict";

const $ = id => document.getElementById(id);
const money = cost => !cost ? "" : cost < 0.0001 ? "under $0.0001" : `$${cost.toFixed(4)}`;
let chat = null;      // the id of the chat that is shown
let known = null;     // the chat as the server described it last
let archived = false; // whether the list has the archived chats
let live = null;      // the draft of the answer that is under way

// --- elements -----------------------------------------------------------------------------------

function make(tag, text = "", more = {}) {
  return Object.assign(document.createElement(tag), {textContent: text}, more);
}

function makeButton(text, title, onclick, more = {}) {
  return make("button", text, {title, onclick: guard(onclick), type: "button", ...more});
}

// Show what goes wrong in the page; it goes with the next thing that works.
function showError(error) {
  $("error").textContent = error?.message ?? "";
  $("error").hidden = !error;
}

function guard(work) {
  return async (...given) => {
    try { showError(null); return await work(...given); } catch (error) { showError(error); }
  };
}

function send(path, options) {
  return fetch(path, options).catch(() => { throw Error("The server cannot be reached; try again in a moment."); });
}

async function call(path, method = "GET", body) {
  const headers = {"content-type": "application/json"};
  const answer = await send(path, {method, headers, body: body && JSON.stringify(body)});
  if (!answer.ok) throw Error(await explain(answer));
  return answer.json();
}

async function explain(answer) {
  const told = await answer.json().catch(() => ({}));
  return typeof told.detail === "string" ? told.detail : `the server answered ${answer.status}`;
}

// --- Markdown, as far as models write it; each text becomes a text node, never HTML ----------------

const ITEM = /^( *)([-*+]|\d+[.)]) +/;
const KINDS = [["heading", /^#{1,6} /], ["rule", /^ *([-*_] *){3,}$/], ["list", ITEM], ["table", /^ *\|/], ["quote", /^ *>/]];

function renderMarkdown(text) {
  const parts = document.createDocumentFragment();
  text.split(/^```/m).forEach((part, index) => {
    if (index % 2) parts.append(renderCode(part));
    else parts.append(...splitBlocks(part.split("\n")).map(renderBlock));
  });
  return parts;
}

// Blocks end at an empty line and where another kind begins; what is indented goes on with a list.
function splitBlocks(lines) {
  const blocks = [];
  let isGap = true;
  for (const line of lines) {
    const kind = KINDS.find(([, mark]) => mark.test(line))?.[0] ?? "text", open = blocks.at(-1);
    const isInList = open?.kind === "list" && (kind === "list" || /^ {2,}\S/.test(line));
    if (line.trim() && (isInList || (!isGap && kind === open.kind && kind !== "heading"))) open.lines.push(line);
    else if (line.trim()) blocks.push({kind, lines: [line]});
    isGap = !line.trim();
  }
  return blocks;
}

function renderCode(part) {
  const [, language, code] = /^([^\n]*)\n?([^]*)$/.exec(part);
  const box = make("div", "", {className: "code", title: language.trim()}), pre = make("pre");
  pre.append(make("code", code.replace(/\n$/, "")));
  const copy = makeButton("Copy", "Copy the code", () => copyText(code, copy));
  box.append(pre, copy);
  return box;
}

function renderBlock({kind, lines}) {
  if (kind === "heading") return renderInline(make("h2"), lines[0].replace(/^#+ +/, ""));
  if (kind === "rule") return make("hr");
  if (kind === "list") return renderList(lines);
  if (kind === "table") return renderTable(lines);
  if (kind === "text") return renderInline(make("p"), lines.join("\n"));
  const quote = make("blockquote");
  quote.append(...splitBlocks(lines.map(line => line.replace(/^ *> ?/, ""))).map(renderBlock));
  return quote;
}

function renderList(lines) {
  const [, indent, mark] = ITEM.exec(lines[0]), first = parseInt(mark), items = [];
  const list = isNaN(first) ? make("ul") : make("ol", "", {start: first});
  for (const line of lines) {
    const begun = ITEM.exec(line);
    if (begun && begun[1].length <= indent.length) items.push([line.slice(begun[0].length)]);
    else items.at(-1).push(line.replace(/^ {1,4}/, ""));
  }
  for (const [head, ...rest] of items) {
    const item = renderInline(make("li"), head);
    item.append(...splitBlocks(rest).map(renderBlock));
    list.append(item);
  }
  return list;
}

function renderTable(lines) {
  const box = make("div", "", {className: "table"}), table = make("table");
  lines.filter(line => !/^[\s|:-]+$/.test(line)).forEach((line, index) => {
    const row = make("tr"), cells = line.trim().replace(/^\||\|$/g, "").split("|");
    row.append(...cells.map(cell => renderInline(make(index ? "td" : "th"), cell.trim())));
    table.append(row);
  });
  box.append(table);
  return box;
}

function renderInline(element, text) {
  const marks = /`([^`]+)`|\*\*([^*]+)\*\*|\*(?!\s)([^*\n]+)(?<!\s)\*|\[([^\]]+)\]\((https?:\/\/[^)\s]+)\)|(https?:\/\/[^\s<>]*[^\s<>.,;:!?)\]'"*])/g;
  let place = 0;
  for (const found of text.matchAll(marks)) {
    const [whole, code, bold, soft, label, named, bare] = found;
    element.append(text.slice(place, found.index));
    element.append(code ? make("code", code) : bold ? make("strong", bold) : soft ? make("em", soft)
      : make("a", label ?? bare, {href: named ?? bare, target: "_blank", rel: "noreferrer"}));
    place = found.index + whole.length;
  }
  element.append(text.slice(place));
  return element;
}

async function copyText(text, button) {
  await navigator.clipboard.writeText(text);
  button.textContent = "Copied";
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}

// --- the list -----------------------------------------------------------------------------------

function readUser() {
  const kept = decodeURIComponent(/(?:^|; )user=([^;]*)/.exec(document.cookie)?.[1] ?? "");
  const name = kept || prompt("Who are you?", "ann") || "ann";
  document.cookie = `user=${encodeURIComponent(name)}; path=/; SameSite=Strict; max-age=31536000`;
  $("user").textContent = name;
}

async function showList() {
  const words = $("find").value.trim();
  const found = await call(words ? `/search?q=${encodeURIComponent(words)}` : `/chats?archived=${archived}`);
  if (words !== $("find").value.trim()) return; // a later search has been asked
  $("list").replaceChildren(...found.map(each => {
    const title = each.title || "Nothing said yet";
    const button = makeButton(title, title, () => openChat(each.id, each.seq));
    button.classList.toggle("now", each.id === chat);
    if (each.snippet) button.append(make("small", each.snippet));
    return button;
  }));
  const none = words ? "Found nothing." : archived ? "Nothing is archived." : "No chats yet.";
  if (!found.length) $("list").append(make("small", none));
  $("shelf").textContent = archived ? "Chats" : "Archived";
}

async function showCosts() {
  const costs = await call("/cost"), sum = costs.reduce((all, each) => all + (each.cost ?? 0), 0);
  $("cost").textContent = `Costs ${money(sum)}`;
  $("costs").replaceChildren(...costs.map(each => {
    const row = make("tr"), tokens = (each.input + each.output).toLocaleString();
    row.append(make("td", each.name.join(" · ")), make("td", [`${tokens} tokens`, money(each.cost)].filter(each => each).join(" · ")));
    return row;
  }));
}

async function openChat(id, seq = null) {
  chat = id;
  history.replaceState(null, "", id ? `#${id}${seq ? `/${seq}` : ""}` : "#");
  $("side").classList.remove("open");
  await showChat(seq);
  await Promise.all([showList(), showCosts()]);
}

// --- a chat -------------------------------------------------------------------------------------

async function showChat(seq = null) {
  const shown = chat;
  const read = shown ? await call(`/chats/${shown}`) : {messages: [], drafts: [], title: "convostore chat"};
  if (shown !== chat) return; // another one was opened meanwhile
  known = read;
  live = known.drafts.find(each => each.live)?.draft ?? null;
  $("title").textContent = known.title || "New chat";
  $("spent").textContent = known.tokens ? [`${known.tokens.toLocaleString()} tokens`, money(known.cost)].filter(each => each).join(" · ") : "";
  $("tools").hidden = !chat;
  $("archive").textContent = known.archived ? "Put back" : "Archive";
  $("export").href = `/chats/${chat}/export`;
  $("send").textContent = live ? "Stop" : "Send";
  $("said").replaceChildren();
  const showDrafts = after => known.drafts.filter(each => each.after === after).forEach(showDraft);
  showDrafts(0);
  for (const each of known.messages) { showMessage(each); showDrafts(each.seq); }
  if (!known.messages.length) $("said").append(make("p", "What is on your mind?", {className: "empty"}));
  const found = seq && $(`m${seq}`);
  if (found) { found.classList.add("found"); found.scrollIntoView({block: "center"}); }
  else $("said").scrollTop = $("said").scrollHeight;
}

function showArticle(className, text, isMarkdown) {
  const article = make("article", "", {className}), body = make("div", "", {className: "text"});
  body.append(isMarkdown ? renderMarkdown(text) : text);
  article.append(body);
  $("said").append(article);
  return article;
}

function showMessage({seq, role, text, branches, place, rating}) {
  const article = showArticle(role, text, role !== "user"), nav = make("nav"), disabled = !!live;
  article.id = `m${seq}`;
  if (branches.length > 1) {
    const go = step => async () => {
      await call(`/chats/${chat}/switch/${branches[place + step]}`, "POST");
      await showChat();
    };
    nav.append(makeButton("<", "Earlier", go(-1), {disabled: disabled || !place}),
      make("span", `${place + 1}/${branches.length}`),
      makeButton(">", "Later", go(1), {disabled: disabled || place + 1 === branches.length}));
  }
  const copy = makeButton("Copy", "Copy the text", () => copyText(text, copy));
  nav.append(copy);
  if (role === "user") nav.append(makeButton("Edit", "Ask otherwise", () => editQuestion(seq, text, article), {disabled}));
  if (role === "assistant") {
    nav.append(makeButton("Again", "Have it answered anew", () => ask({after: seq - 1}), {disabled}));
    for (const [sign, value, title] of [["Good", 1, "A good answer"], ["Bad", -1, "A bad answer"]]) {
      const rate = async () => {
        await call(`/chats/${chat}/messages/${seq}/rating`, "PUT", {rating: rating === value ? null : value});
        await showChat(seq);
      };
      nav.append(makeButton(sign, title, rate, {className: rating === value ? "on" : "", ariaPressed: `${rating === value}`}));
    }
  }
  article.append(nav);
}

function showDraft({draft, text, after, live: isLive}) {
  if (isLive) return guard(followDraft)(draft);
  const article = showArticle("draft", text, true), nav = make("nav");
  const settle = (keep, then = showChat) => async () => {
    await call(`/drafts/${draft}?keep=${keep}`, "POST");
    await then();
  };
  nav.append(makeButton("Keep", "Make it a message", settle(true)), makeButton("Discard", "Let it go", settle(false)),
    makeButton("Again", "Have it answered anew", settle(false, () => ask({after}))));
  const why = text ? "This answer was interrupted." : "This answer was interrupted before it began.";
  article.append(make("small", why), nav);
}

function editQuestion(seq, text, article) {
  const area = make("textarea", text, {rows: 3}), nav = make("nav");
  nav.append(makeButton("Send", "Ask this in its place", () => ask({text: area.value, after: seq - 1})),
    makeButton("Cancel", "", () => showChat()));
  article.replaceChildren(area, nav);
  area.focus();
}

// --- answers ------------------------------------------------------------------------------------

async function post(asked) {
  if (!chat) await openChat((await call("/chats", "POST")).id);
  const answer = await send(`/chats/${chat}/messages`, {
    method: "POST", headers: {"content-type": "application/json"},
    body: JSON.stringify({...asked, revision: known.revision}),
  });
  if (answer.ok) return answer;
  const problem = await explain(answer);
  await showChat();
  throw Error(problem);
}

async function ask(asked) {
  if (asked.text !== undefined && !asked.text.trim()) throw Error("The question is empty: write something.");
  const answer = await post(asked).catch(error => {
    if (asked.after === undefined) $("text").value ||= asked.text; // nothing typed is lost
    throw error;
  });
  const last = asked.after ?? Infinity;
  $("said").replaceChildren();
  known.messages.filter(each => each.seq <= last).forEach(showMessage);
  if (asked.text !== undefined) showArticle("user", asked.text, false);
  await showAnswer(answer);
}

async function followDraft(draft) {
  await showAnswer(await send(`/drafts/${draft}`));
}

// Show an answer as it comes; then the chat as it is stored.
async function showAnswer(answer) {
  const shown = chat, article = showArticle("assistant live", "", true), body = article.firstChild;
  $("send").textContent = "Stop";
  $("said").scrollTop = $("said").scrollHeight;
  let text = "", problem = null;
  for await (const event of readEvents(answer)) {
    if (shown !== chat) return; // it goes on without a reader
    live = event.draft ?? live;
    problem = event.error ? Error(event.error) : problem;
    if (!event.text) continue;
    const isAtEnd = $("said").scrollHeight - $("said").scrollTop - $("said").clientHeight < 80;
    text += event.text;
    body.replaceChildren(renderMarkdown(text));
    if (isAtEnd) $("said").scrollTop = $("said").scrollHeight;
  }
  if (shown !== chat) return;
  try {
    await showChat();
    await Promise.all([showList(), showCosts()]);
  } finally {
    if (problem) throw problem; // rather than that the server cannot be asked either
  }
}

async function* readEvents(answer) {
  if (!answer.ok) throw Error(await explain(answer));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (let part; !(part = await reader.read()).done;) {
      const events = (rest + part.value).split("\n\n");
      rest = events.pop();
      for (const each of events) yield JSON.parse(each.slice(6));
    }
  } catch {
    yield {error: "The connection was lost; reload to see how far the answer came."};
  } finally {
    reader.cancel().catch(() => {});
  }
}

// --- what one can press ---------------------------------------------------------------------------

$("ask").onsubmit = guard(async event => {
  event.preventDefault();
  if (live) return call(`/drafts/${live}/stop`, "POST");
  const text = $("text").value.trim();
  if (!text) throw Error("The question is empty: write something.");
  $("text").value = "";
  await ask({text});
});
$("send").disabled = false; // before, the browser would send the form by itself
$("text").onkeydown = event => {
  if (event.key === "Enter" && !event.shiftKey) { event.preventDefault(); $("ask").requestSubmit(); }
};
$("new").onclick = guard(() => openChat(null));
$("find").oninput = guard(showList);
$("show").onclick = () => $("side").classList.add("open");
$("hide").onclick = () => $("side").classList.remove("open");
$("shelf").onclick = guard(async () => { archived = !archived; await showList(); });
$("archive").onclick = guard(async () => {
  await call(`/chats/${chat}/archive?archived=${!known.archived}`, "POST");
  await openChat(known.archived ? chat : null);
});
$("title").onclick = guard(async () => {
  const title = chat && prompt("Title", known.title ?? "");
  if (title === null) return;
  await call(`/chats/${chat}`, "PATCH", {title});
  await openChat(chat);
});
$("delete").onclick = guard(async () => {
  if (!confirm("Erase this chat for good?")) return;
  await call(`/chats/${chat}`, "DELETE");
  await openChat(null);
});
$("leave").onclick = guard(async () => {
  if (!confirm("Erase all your chats for good?")) return;
  await call("/account", "DELETE");
  await openChat(null);
});
$("user").onclick = guard(async () => {
  document.cookie = "user=; path=/; max-age=0";
  readUser();
  await openChat(null);
});

function openHash() {
  const [id, seq] = location.hash.slice(1).split("/");
  return openChat(id || null, seq ?? null).catch(error => { showError(error); return openChat(null); });
}
window.onhashchange = guard(openHash);
window.onfocus = guard(async () => { // another window may have gone on with the chat
  if (!chat || live || document.querySelector("article textarea")) return;
  const {revision, drafts} = await call(`/chats/${chat}`);
  if (revision !== known.revision || drafts.length !== known.drafts.length) await openChat(chat);
});
readUser();
openHash();

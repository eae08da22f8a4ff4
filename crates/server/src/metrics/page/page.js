"use strict";
// Reads the counters each second, and shows the differences as rates. It asks this server alone.

const HISTORY = 180;
const INTERVAL = 1000;
const ROWS = 50;
const TOKEN = "smbeam.token";
const byId = (id) => document.getElementById(id);
const history = [];
let before = null;
let isPaused = false;

function bytes(rate) {
  const units = ["B/s", "kB/s", "MB/s", "GB/s", "TB/s"];
  let unit = 0;
  while (rate >= 999.5 && unit < units.length - 1) {
    rate /= 1000;
    unit += 1;
  }
  const digits = rate >= 99.5 || unit === 0 ? 0 : rate >= 9.95 ? 1 : 2;
  return `${rate.toFixed(digits)} ${units[unit]}`;
}

function number(rate) {
  return rate > 0 && rate < 10 ? rate.toFixed(1) : Math.round(rate).toLocaleString("en");
}

function count(value) {
  return value.toLocaleString("en");
}

function time(seconds) {
  if (seconds >= 1) return `${seconds.toFixed(2)} s`;
  if (seconds >= 0.001) return `${(seconds * 1e3).toFixed(2)} ms`;
  return `${(seconds * 1e6).toFixed(0)} us`;
}

// The rate of a counter. A smaller counter is that of a new server.
function rate(now, old, seconds) {
  return Math.max(0, now - (old ?? 0)) / seconds;
}

function byKey(rows, key) {
  return new Map(rows.map((row) => [key(row), row]));
}

function cell(kind, text, name) {
  const made = document.createElement(kind);
  made.textContent = text;
  if (name) made.className = name;
  return made;
}

// Fills a table. A column is [head, class, text of a row, whether the text is bad].
function fill(id, columns, rows) {
  const head = document.createElement("tr");
  for (const [name, kind] of columns) head.append(cell("th", name, kind));
  const lines = rows.slice(0, ROWS).map((row) => {
    const line = document.createElement("tr");
    for (const [, kind, text, isBad] of columns) {
      line.append(cell("td", text(row), isBad?.(row) ? `${kind} bad` : kind));
    }
    return line;
  });
  if (rows.length > ROWS) {
    const line = document.createElement("tr");
    const rest = cell("td", `${rows.length - ROWS} more`);
    rest.colSpan = columns.length;
    line.append(rest);
    lines.push(line);
  }
  byId(id).replaceChildren(head, ...lines);
}

function area(values, highest) {
  const x = (index) => (index * 600) / (HISTORY - 1);
  const y = (value) => 118 - (value / highest) * 112;
  const start = HISTORY - values.length;
  const points = values.map((value, index) => `${x(start + index)},${y(value)}`);
  return `M${x(start)},118 L${points.join(" L")} L600,118 Z`;
}

function chart() {
  const highest = Math.max(1, ...history.flatMap((point) => [point.sent, point.received]));
  byId("area-sent").setAttribute("d", area(history.map((point) => point.sent), highest));
  byId("area-received").setAttribute("d", area(history.map((point) => point.received), highest));
  byId("highest").textContent = `highest ${bytes(highest)}`;
}

function show(now) {
  const isSame = before !== null && before.since === now.since;
  const old = isSame ? before : { totals: {}, commands: [], shares: [], clients: [] };
  const seconds = Math.max(0.001, (now.at_ms - (before?.at_ms ?? now.at_ms)) / 1000);
  const isFirst = before === null;
  before = now;
  byId("name").textContent = now.name;
  document.title = `${now.name} - smbeam`;
  if (isFirst) return;
  const of = (counter) => rate(now.totals[counter], old.totals[counter], seconds);
  const point = { sent: of("sent"), received: of("received") };
  history.push(point);
  if (history.length > HISTORY) history.shift();
  byId("sent").textContent = bytes(point.sent);
  byId("received").textContent = bytes(point.received);
  byId("answered").textContent = number(of("answered"));
  byId("errors").textContent = number(of("errors"));
  byId("connections").textContent = count(now.clients.length + now.clients_left_out);
  byId("sessions").textContent = count(now.now.sessions);
  byId("opens").textContent = count(now.now.opens);
  byId("refused").textContent = count(now.refused_logins);
  chart();
  tables(now, old, seconds);
  byId("main").hidden = false;
}

function tables(now, old, seconds) {
  const clients = byKey(old.clients, (row) => row.id + row.peer);
  const rows = now.clients.map((row) => {
    const was = clients.get(row.id + row.peer) ?? {};
    const of = (counter) => rate(row[counter], was[counter], seconds);
    return {
      ...row, received: of("received"), sent: of("sent"), answered: of("answered"),
      errors: of("errors"),
    };
  });
  rows.sort((one, other) =>
    other.received + other.sent - one.received - one.sent || other.answered - one.answered);
  fill("clients", [
    ["Client", "", (row) => row.peer],
    ["User", "", (row) => row.users.filter(Boolean).join(", ") || "-"],
    ["Transport", "", (row) => row.transport],
    ["Protection", "", (row) => row.protection ?? "-"],
    ["Received", "number", (row) => bytes(row.received)],
    ["Sent", "number", (row) => bytes(row.sent)],
    ["Requests/s", "number", (row) => number(row.answered)],
    ["Errors/s", "number", (row) => number(row.errors), (row) => row.errors > 0],
  ], rows);
  const mean = (row, was) => {
    const count = row.answered - (was.answered ?? 0);
    return count > 0 ? (row.seconds - (was.seconds ?? 0)) / count : 0;
  };
  const shares = byKey(old.shares, (row) => row.share);
  fill("shares", [
    ["Share", "", (row) => row.share],
    ["Requests/s", "number", (row) => number(row.rate)],
    ["Read", "number", (row) => bytes(row.readRate)],
    ["Written", "number", (row) => bytes(row.writtenRate)],
    ["Mean time", "number", (row) => time(row.mean)],
  ], now.shares.map((row) => {
    const was = shares.get(row.share) ?? {};
    return {
      ...row, mean: mean(row, was), rate: rate(row.answered, was.answered, seconds),
      readRate: rate(row.read, was.read, seconds),
      writtenRate: rate(row.written, was.written, seconds),
    };
  }).sort((one, other) => other.rate - one.rate));
  const commands = byKey(old.commands, (row) => row.command);
  fill("commands", [
    ["Command", "", (row) => row.command],
    ["Requests/s", "number", (row) => number(row.rate)],
    ["Errors/s", "number", (row) => number(row.errorRate), (row) => row.errorRate > 0],
    ["Errors in all", "number", (row) => count(row.errors)],
    ["Mean time", "number", (row) => time(row.mean)],
  ], now.commands.map((row) => {
    const was = commands.get(row.command) ?? {};
    return {
      ...row, mean: mean(row, was), rate: rate(row.answered, was.answered, seconds),
      errorRate: rate(row.errors, was.errors, seconds),
    };
  }).sort((one, other) => other.rate - one.rate));
  fill("files", [
    ["User", "", (row) => row.user || "-"],
    ["Share", "", (row) => row.share],
    ["Path", "path", (row) => `/${row.path}`],
    ["Access", "", (row) => row.access.join(", ") || "-"],
    ["Oplock", "", (row) => row.oplock],
    ["Locks", "number", (row) => count(row.lock_count)],
  ], now.files);
}

function state(text, isBad) {
  byId("state").textContent = text;
  byId("state").className = isBad ? "bad" : "";
}

async function read() {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token === null ? {} : { Authorization: `Bearer ${token}` };
  const answer = await fetch("api/v1/activity", { headers, cache: "no-store" });
  if (answer.status === 401) {
    sessionStorage.removeItem(TOKEN);
    byId("login").hidden = false;
    byId("main").hidden = true;
    state(token === null ? "the server wants a token" : "the token is wrong", token !== null);
    return false;
  }
  if (!answer.ok) throw new Error(`status ${answer.status}`);
  byId("login").hidden = true;
  const now = await answer.json();
  if (!isPaused) show(now);
  state(isPaused ? "paused" : new Date(now.at_ms).toLocaleTimeString(), false);
  return true;
}

async function run() {
  let goesOn = true;
  try {
    goesOn = await read();
  } catch (error) {
    state(`no answer: ${error.message}`, true);
  }
  if (goesOn) setTimeout(run, INTERVAL);
}

byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, byId("token").value);
  byId("token").value = "";
  run();
});
byId("pause").addEventListener("click", () => {
  isPaused = !isPaused;
  byId("pause").textContent = isPaused ? "Continue" : "Pause";
});
run();

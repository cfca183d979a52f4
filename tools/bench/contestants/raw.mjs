/**
 * The physical floor. Not an agent: a bare loop that makes the same messages and commits each one to SQLite in the best
 * layout we know, so that nothing durable can do less.
 *
 * - `raw:fenced`: WAL, synchronous=FULL; each message is one row, written in a transaction that reads the lease first.
 * - `raw:group`: the same, and what is saved in one turn of the event loop shares a transaction.
 * - `raw:append`: no database: each message is a line of a file, appended and synced.
 * - `raw:none`: the loop alone, nothing is saved.
 */
import fs from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';
import { PROMPT, answer, lookup } from '../workload.mjs';

const LEASE_MS = 10_000_000;
/** Sessions share one table: the key is session number x 2^24 + position. */
const MESSAGES_PER_SESSION = 2 ** 24;

export async function load(variant) {
  return (directory) => openLoop(openLog(variant, path.join(directory, 'raw.db')));
}

function openLoop(log) {
  return {
    async run(id, task) {
      const messages = [{ role: 'user', content: PROMPT }];
      // Not awaited: with group commit the input is stored together with the first answer, as an agent may do, too.
      void log.save(id, messages, 'running');
      await loop(log, id, messages, task);
    },
    resume: (id, task) => loop(log, id, log.load(id), task),
    listUnfinished: async () => log.listUnfinished().length,
    close: async () => log.close(),
  };
}

async function loop(log, id, messages, task) {
  for (;;) {
    const { text, calls } = await answer(task, messages.at(-1).toolCallId);
    if (calls.length === 0) {
      messages.push({ role: 'assistant', content: text });
      return log.save(id, messages, 'finished');
    }
    messages.push({ role: 'assistant', content: text, toolCalls: calls });
    await log.save(id, messages, 'running');
    let saved;
    for (const call of calls) {
      messages.push({ role: 'tool', toolCallId: call.id, content: lookup(call.args) });
      saved = log.save(id, messages, 'running');
    }
    await saved;
  }
}

function openLog(variant, file) {
  switch (variant) {
    case 'none':
      return { save() {}, close() {} };
    case 'append':
      return fileLog(path.dirname(file));
    case 'fenced':
      return sqliteLog(file, (commit) => (save) => commit([save]));
    case 'group':
      return sqliteLog(file, groupCommit);
    default:
      throw new Error(`There is no contestant raw:${variant}.`);
  }
}

function fileLog(directory) {
  const files = new Map();
  const pathOf = (id) => path.join(directory, `${id}.jsonl`);
  return {
    save(id, messages, status) {
      let file = files.get(id);
      if (file === undefined) files.set(id, (file = fs.openSync(pathOf(id), 'a')));
      fs.writeSync(file, `${JSON.stringify(messages.at(-1))}\n`);
      fs.fdatasyncSync(file);
      if (status !== 'finished') return;
      fs.closeSync(file);
      files.delete(id);
    },
    load(id) {
      const lines = fs.readFileSync(pathOf(id), 'utf8').trimEnd().split('\n');
      return JSON.parse(`[${lines.join(',')}]`);
    },
    close() {},
  };
}

function sqliteLog(file, scheduleWith) {
  const db = new Database(file);
  db.pragma('journal_mode = WAL');
  db.pragma('synchronous = FULL');
  db.exec(`
    CREATE TABLE IF NOT EXISTS event (key INTEGER PRIMARY KEY, data TEXT);
    CREATE TABLE IF NOT EXISTS session (number INTEGER PRIMARY KEY, id TEXT UNIQUE, status TEXT, owner TEXT, expires_at INTEGER);
    CREATE INDEX IF NOT EXISTS unfinished ON session (status) WHERE status <> 'finished';
  `);
  const start = db.prepare(
    "INSERT INTO session (id, status, owner, expires_at) VALUES (?, 'running', 'me', ?)",
  );
  const find = db.prepare('SELECT number FROM session WHERE id = ?').pluck();
  const holds = db
    .prepare("SELECT 1 FROM session WHERE number = ? AND owner = 'me' AND expires_at > ?")
    .pluck();
  const finish = db.prepare("UPDATE session SET status = 'finished' WHERE number = ?");
  const append = db.prepare('INSERT INTO event VALUES (?, ?)');
  const readAll = db.prepare('SELECT data FROM event WHERE key BETWEEN ? AND ? ORDER BY key').pluck();
  const unfinished = db.prepare("SELECT id, status FROM session WHERE status <> 'finished'");

  const commit = db.transaction((saves) => {
    for (const { number, key, data, status } of saves) {
      if (holds.get(number, Date.now()) !== 1) throw new Error('The lease is lost.');
      if (status === 'finished') finish.run(number);
      append.run(key, data);
    }
  }).immediate;
  const schedule = scheduleWith(commit);

  const numbers = new Map();
  const numberOf = (id) => {
    let number = numbers.get(id) ?? find.get(id);
    if (number === undefined) number = Number(start.run(id, Date.now() + LEASE_MS).lastInsertRowid);
    numbers.set(id, number);
    return number;
  };
  return {
    save(id, messages, status) {
      const number = numberOf(id);
      const key = number * MESSAGES_PER_SESSION + messages.length;
      return schedule({ number, key, data: JSON.stringify(messages.at(-1)), status });
    },
    load(id) {
      const first = numberOf(id) * MESSAGES_PER_SESSION;
      return JSON.parse(`[${readAll.all(first, first + MESSAGES_PER_SESSION - 1).join(',')}]`);
    },
    listUnfinished: () => unfinished.all(),
    close: () => db.close(),
  };
}

function groupCommit(commit) {
  let group;
  return (save) => {
    group ??= startGroup();
    group.saves.push(save);
    return group.committed;
  };

  function startGroup() {
    const saves = [];
    const committed = new Promise((resolve, reject) => {
      setImmediate(() => {
        group = undefined;
        try {
          resolve(commit(saves));
        } catch (error) {
          reject(error);
        }
      });
    });
    return { saves, committed };
  }
}

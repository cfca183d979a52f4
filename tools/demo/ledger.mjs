// The world outside of Lousho: what the tools really did, in a database and a folder of their own.
//
// Charges and shipments take an idempotency key, as payment and shipping systems do. Refunds take none: a second one would
// show. `attempts` logs each time that a tool began, so that a call that ran twice shows even where the key hid it.
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import Database from 'better-sqlite3';

const tables = `
  CREATE TABLE IF NOT EXISTS attempts (id INTEGER PRIMARY KEY, process INTEGER, tool TEXT, order_number INTEGER,
                                       tool_call_id TEXT, idempotency_key TEXT, step INTEGER);
  CREATE TABLE IF NOT EXISTS charges (idempotency_key TEXT PRIMARY KEY, order_number INTEGER, cents INTEGER);
  CREATE TABLE IF NOT EXISTS shipments (idempotency_key TEXT PRIMARY KEY, order_number INTEGER);
  CREATE TABLE IF NOT EXISTS refunds (id INTEGER PRIMARY KEY, order_number INTEGER, cents INTEGER);
  CREATE TABLE IF NOT EXISTS model_answers (id INTEGER PRIMARY KEY, process INTEGER, step INTEGER);
`;

export function openLedger(folder) {
  const mailFolder = path.join(folder, 'mail');
  mkdirSync(mailFolder, { recursive: true });
  const database = new Database(path.join(folder, 'ledger.db'));
  database.pragma('journal_mode = WAL');
  database.exec(tables);
  const insert = (table, row) => {
    const columns = Object.keys(row);
    const values = columns.map((column) => `@${column}`);
    return (
      database.prepare(`INSERT OR IGNORE INTO ${table} (${columns}) VALUES (${values})`).run(row).changes ===
      1
    );
  };
  const rowsOf = (table) => database.prepare(`SELECT * FROM ${table} ORDER BY rowid`).all();

  return {
    /** `{ process, tool, order_number, tool_call_id, idempotency_key, step }` */
    logAttempt: (attempt) => insert('attempts', attempt),
    /** `false` when this key has been charged before. */
    charge: (charge) => insert('charges', charge),
    /** `false` when this key has been shipped before. */
    ship: (shipment) => insert('shipments', shipment),
    refund: (refund) => insert('refunds', refund),
    /** The model has an answer for this step and is about to give it. */
    logModelAnswer: (answer) => insert('model_answers', answer),
    /** The same key writes the same file. */
    email(order, idempotencyKey, text) {
      const name = `${order}.${encodeURIComponent(idempotencyKey)}.txt`;
      writeFileSync(path.join(mailFolder, name), `${text}\n`);
    },
    /** Everything, as `{ attempts, charges, shipments, refunds, modelAnswers, emails }`. */
    read() {
      const emails = readdirSync(mailFolder).map((name) => ({
        order_number: Number.parseInt(name, 10),
        idempotency_key: decodeURIComponent(name.slice(name.indexOf('.') + 1, -'.txt'.length)),
        text: readFileSync(path.join(mailFolder, name), 'utf8'),
      }));
      return {
        attempts: rowsOf('attempts'),
        charges: rowsOf('charges'),
        shipments: rowsOf('shipments'),
        refunds: rowsOf('refunds'),
        modelAnswers: rowsOf('model_answers'),
        emails,
      };
    },
    close: () => database.close(),
  };
}

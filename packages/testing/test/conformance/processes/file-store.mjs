// A small store on files, for several processes, and ways to get it wrong. Plain JavaScript without imports of ours: a child process
// of plain Node opens it.
//
// Each record is a folder of numbered files, and the highest number is its state. A write links a whole file to the next number, which
// one process only can do; whoever comes too late reads again. So every write is a compare-and-swap, a kill leaves no half file under a
// number, and a process that stood still finds its number taken.
import {
  existsSync,
  linkSync,
  mkdirSync,
  readFileSync,
  readdirSync,
  renameSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';

const KEPT_FILES = 30;

/** @param {{ folder: string, flaw?: string }} options */
export default function openFileStore({ folder, flaw }) {
  let files = 0;

  function read(name) {
    const place = path.join(folder, name);
    const newest = existsSync(place)
      ? Math.max(0, ...readdirSync(place).map(Number).filter(Number.isFinite))
      : 0;
    const record = newest === 0 ? {} : JSON.parse(readFileSync(path.join(place, String(newest)), 'utf8'));
    return { newest, record };
  }

  /** `change` gives the new record, or nothing to leave it. */
  async function update(name, change) {
    for (;;) {
      const { newest, record } = read(name);
      const next = await change(record);
      if (next === undefined) return false;
      if (await write(name, newest + 1, JSON.stringify(next))) return true;
    }
  }

  async function write(name, number, text) {
    const place = path.join(folder, name);
    mkdirSync(place, { recursive: true });
    const target = path.join(place, String(number));
    if (flaw === 'writes in place') {
      writeFileSync(target, text.slice(0, text.length / 2));
      await wait(3);
      writeFileSync(target, text);
      return true;
    }
    const aside = path.join(folder, `${process.pid}-${(files += 1)}.tmp`);
    writeFileSync(aside, text);
    if (flaw === 'overwrites') {
      // Long enough that others read before, also on a busy machine.
      await wait(10);
      renameSync(aside, target);
      return true;
    }
    try {
      linkSync(aside, target);
    } catch (error) {
      if (error.code !== 'EEXIST') throw error;
      return false;
    } finally {
      rmSync(aside, { force: true });
    }
    rmSync(path.join(place, String(number - KEPT_FILES)), { force: true });
    return true;
  }

  const withSave = (record, checkpoint) => ({
    ...record,
    checkpoint,
    history: [checkpoint, ...(record.history ?? [])].slice(0, 3),
  });
  const holds = ({ lease }, owner, fence) =>
    lease?.owner === owner && (fence === undefined || lease.fence === fence);
  const entryOf = (checkpoint) => {
    const { stepIndex: step, savedAt, status } = checkpoint;
    return { step, savedAt, status, checkpoint };
  };

  const checkpoints = {
    async save(id, checkpoint) {
      const saving = async () => update(`run-${id}`, (record) => withSave(record, checkpoint));
      if (flaw === 'acknowledges first') setTimeout(saving, 10);
      else await saving();
    },
    async load(id) {
      return read(`run-${id}`).record.checkpoint ?? null;
    },
    async delete(id) {
      await update(`run-${id}`, ({ fence }) => ({ fence }));
    },
    async history(id, { limit = Infinity } = {}) {
      return (read(`run-${id}`).record.history ?? []).slice(0, limit).map(entryOf);
    },
    async acquireLease(id, owner, ttlMs) {
      let fence;
      const taken = await update(`run-${id}`, (record) => {
        const { lease } = record;
        const isOthers = lease !== undefined && lease.owner !== owner;
        if (isOthers && (flaw === 'never frees a lease' || Date.now() < lease.expiresAtMs + lease.ttlMs))
          return undefined;
        fence = isOthers || lease === undefined ? (record.fence ?? 0) + 1 : lease.fence;
        return { ...record, fence, lease: { owner, fence, ttlMs, expiresAtMs: Date.now() + ttlMs } };
      });
      return taken && { fence };
    },
    async renewLease(id, owner, ttlMs, fence) {
      return update(`run-${id}`, (record) =>
        holds(record, owner, fence)
          ? { ...record, lease: { ...record.lease, expiresAtMs: Date.now() + ttlMs } }
          : undefined,
      );
    },
    async releaseLease(id, owner, fence) {
      await update(`run-${id}`, (record) =>
        holds(record, owner, fence) ? { ...record, lease: undefined } : undefined,
      );
    },
    async saveIfLeased(id, checkpoint, owner, fence) {
      if (flaw === 'trusts its memory') return update(`run-${id}`, (record) => withSave(record, checkpoint));
      if (flaw === 'checks before it writes') {
        if (!holds(read(`run-${id}`).record, owner, fence)) return false;
        await wait(5);
        return update(`run-${id}`, (record) => withSave(record, checkpoint));
      }
      const saved = await update(`run-${id}`, (record) =>
        holds(record, owner, fence) ? withSave(record, checkpoint) : undefined,
      );
      if (!saved && flaw === 'notes what it refuses')
        await update(`run-${id}`, (record) => ({
          ...record,
          history: [...(record.history ?? []), checkpoint],
        }));
      return saved;
    },
  };

  return {
    checkpoints,
    approvals: {
      save: async (record) => void (await update(`approval-${record.id}`, () => ({ record }))),
      load: async (id) => read(`approval-${id}`).record.record ?? null,
      list: async () => [],
      delete: async (id) => update(`approval-${id}`, ({ record }) => (record === undefined ? undefined : {})),
    },
    sessions: {
      load: async (id) => read(`session-${id}`).record.record ?? null,
      saveIfRevision: async (record, expected) =>
        update(`session-${record.id}`, (stored) =>
          (stored.record?.revision ?? 0) === expected
            ? { record: { ...record, revision: expected + 1 } }
            : undefined,
        ),
      delete: async (id) => void (await update(`session-${id}`, () => ({}))),
    },
  };
}

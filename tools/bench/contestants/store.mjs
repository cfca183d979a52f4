/**
 * Stores alone, with no agent: what one save, many saves at once, and a list cost.
 *
 * - `store:sqlite`: SqliteStore as it is by default.
 * - `store:file`: fileStore as it is by default.
 * - `store:append`: no store: a line of the same length, appended to a file and synced.
 */
import fs from 'node:fs';
import path from 'node:path';
import { CHECKPOINT_VERSION, appendFrozen, deepFreeze, emptyUsage } from '@lousho/contract';
import { lookup } from '../workload.mjs';

export async function load(variant) {
  const open = await loadOpener(variant);
  return (directory) => open(directory);
}

async function loadOpener(variant) {
  switch (variant) {
    case 'sqlite': {
      const { SqliteStore } = await import('@lousho/store-sqlite');
      return (directory) => openStore(new SqliteStore(path.join(directory, 'lousho.db')));
    }
    case 'file': {
      const { fileStore } = await import('@lousho/store-file');
      return (directory) => openStore(fileStore(path.join(directory, 'runs')));
    }
    case 'append':
      return openFiles;
    default:
      throw new Error(`There is no contestant store:${variant}.`);
  }
}

function openStore(store) {
  const { checkpoints } = store;
  return {
    /** A stored run with so many messages; each call of what it returns saves one more. */
    async startRun(id, messageCount, status = 'in-progress') {
      let messages = appendFrozen(
        [],
        Array.from({ length: messageCount }, (_, index) => messageOf(index)),
      );
      await checkpoints.save(id, checkpointOf(messages, status));
      return () => {
        messages = appendFrozen(messages, [messageOf(messages.length)]);
        return checkpoints.save(id, checkpointOf(messages, status));
      };
    },
    async listUnfinished() {
      return (await checkpoints.list({ status: 'in-progress' })).length;
    },
    close: () => store.close(),
  };
}

/** The lines are as long as those of the file store: the message, and some numbers about the run. */
function openFiles(directory) {
  const files = [];
  return {
    async startRun(id) {
      const file = fs.openSync(path.join(directory, `${id}.jsonl`), 'a');
      files.push(file);
      let count = 0;
      return async () => {
        const line = {
          t: Date.now(),
          s: count,
          n: count,
          u: [[count, count]],
          m: [messageOf(count)],
          sum: 'a1b2c3d4',
        };
        count += 1;
        fs.writeSync(file, `${JSON.stringify(line)}\n`);
        fs.fsyncSync(file);
      };
    },
    close: async () => files.forEach((file) => fs.closeSync(file)),
  };
}

const facts = deepFreeze({
  version: CHECKPOINT_VERSION,
  runId: 'bench',
  agentName: 'bench',
  usage: emptyUsage,
  runInput: { start: 0, count: 1 },
  heldInput: [],
  inputIds: [],
  settledResults: [],
  startedToolCallIds: [],
  approvals: [],
  delegatedInFlight: [],
});

function checkpointOf(messages, status) {
  return deepFreeze({
    ...facts,
    status,
    ...(status === 'finished' ? { finishReason: 'stop' } : {}),
    messages,
    stepIndex: messages.length,
    savedAt: new Date().toISOString(),
  });
}

/** 1 KB of text. */
function messageOf(index) {
  return { role: 'assistant', content: [{ type: 'text', text: lookup({ record: index }) }] };
}

// An agent whose model follows a script and whose tools have one effect: a line in the log when they begin, and one when they end.
import { createAgent, defineTool } from '@lousho/core';
import { currentOperation } from './effect-log.mjs';
import { turnClock, turnStartMs } from './turn-clock.mjs';

/**
 * `script`: for each model response the calls it makes, `[{ name, args }]`; none: it ends the run. The response is chosen by how many the
 * conversation holds, over and over from the first: a request that is made again gets the same response. `scripts`: others, by the first
 * words of a conversation.
 */
export function scriptedAgent({
  store,
  log,
  gates,
  script,
  scripts = {},
  modelMs = 0,
  clockAheadMs = 0,
  ...options
}) {
  return createAgent({
    name: 'rig',
    provider: scriptedModel({ script, scripts, modelMs, log }),
    tools: [
      effect('work', { description: 'Takes a while.' }),
      effect('careful', { description: 'Is not to be done twice.', onInterrupted: 'never' }),
      effect('refund', { description: 'Is for a person to decide.', needsApproval: true }),
      effect('held', { description: 'Takes until it is released.' }),
      effect('poison', { description: 'Kills whoever calls it.' }),
    ],
    store,
    ports: { clock: { ...turnClock, wallMs: () => turnClock.wallMs() + clockAheadMs } },
    maxSteps: 10_000,
    onEvent({ type, status, step }) {
      if (type === 'checkpoint.saved') log.write({ kind: 'event.saved', status, step });
    },
    ...options,
  });

  function effect(name, definition) {
    return defineTool({
      name,
      input: { type: 'object' },
      ...definition,
      async execute(args, { toolCallId: callId, idempotencyKey: key, step, signal }) {
        const { ms = 0, gate, bytes = 0 } = args;
        const call = { callId, toolName: name, args, key, step };
        log.write({ kind: 'tool.started', turnAt: turnStartMs(), ...call });
        if (name === 'poison') {
          log.write({ kind: 'worker.killed' });
          process.kill(process.pid, 'SIGKILL');
        }
        await (gate === undefined ? pause(ms, signal) : gates.passed(gate, signal));
        log.write({ kind: 'tool.done', ...call });
        return { did: callId, ...(bytes > 0 && { padding: '.'.repeat(bytes) }) };
      },
    });
  }
}

function scriptedModel({ script, scripts, modelMs, log }) {
  const scriptFor = ([first]) => scripts[first.content] ?? script;
  return {
    providerId: 'scripted',
    modelId: 'scripted',
    async generate({ messages, signal }) {
      const position = messages.filter(({ role }) => role === 'assistant').length + 1;
      log.write({ kind: 'model.asked', position, turnAt: turnStartMs() });
      await pause(modelMs, signal);
      log.writeAndSync({ kind: 'model.answered', position });
      const steps = scriptFor(messages);
      return response(steps[(position - 1) % steps.length], position, currentOperation.getStore()?.op);
    },
  };
}

function response(calls, position, op) {
  const toolCalls = calls.map(({ name, args }, index) => ({
    type: 'tool-call',
    toolCallId: `c${position}-${index}`,
    toolName: name,
    args,
  }));
  return {
    message: {
      role: 'assistant',
      content: [{ type: 'text', text: `Response ${position} for ${op}.` }, ...toolCalls],
    },
    finishReason: calls.length === 0 ? 'stop' : 'tool-calls',
    usage: { inputTokens: 1, outputTokens: 1 },
  };
}

/** What the parent process holds back until it says go. */
export function openGates() {
  const gates = new Map();
  const gate = (name) => {
    if (!gates.has(name)) {
      const opened = {};
      opened.promise = new Promise((resolve) => (opened.resolve = resolve));
      gates.set(name, opened);
    }
    return gates.get(name);
  };
  return {
    open: (name) => gate(name).resolve(),
    passed: (name, signal) => unlessAborted(gate(name).promise, signal),
  };
}

function pause(durationMs, signal) {
  if (durationMs <= 0) return Promise.resolve();
  let timer;
  const over = new Promise((resolve) => {
    timer = setTimeout(resolve, durationMs);
  });
  return unlessAborted(over, signal).finally(() => clearTimeout(timer));
}

async function unlessAborted(promise, signal) {
  let giveUp;
  const aborted = new Promise((_resolve, reject) => {
    giveUp = () => reject(signal.reason);
    if (signal?.aborted) giveUp();
    signal?.addEventListener('abort', giveUp, { once: true });
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    signal?.removeEventListener('abort', giveUp);
  }
}

// A process of a rig: opens the store, and does what its parent asks for until it is told to end, or is killed.
//
// Started with one argument in JSON: `{ worker, storeKind, storeFolder, logPath, agent, recover, clockAheadMs, storeFault, echo, holdDecisions
// }`. The parent sends `{ type: 'begin' }`, then `{ type: 'perform', op, session, action }` and `{ type: 'open', gate }`, and `{ type: 'end' }`.
import { checkpointIdOfApproval } from '@lousho/contract';
import { currentOperation, openEffectLog, recoveries } from './effect-log.mjs';
import { observedStore } from './observed-store.mjs';
import { openStore } from './open-store.mjs';
import { openGates, scriptedAgent } from './scripted-agent.mjs';
import { turnClock } from './turn-clock.mjs';

const job = JSON.parse(process.argv[2]);
const gates = openGates();
let opened;
let agent;
let log;

process.on('message', (message) => {
  switch (message.type) {
    case 'begin':
      begin();
      break;
    case 'perform':
      void perform(message);
      break;
    case 'open':
      gates.open(message.gate);
      break;
    case 'end':
      void end();
      break;
    default:
      throw new Error(`Unknown message ${message.type}`);
  }
});
// Without its parent nobody wants to know how it goes on.
process.on('disconnect', () => process.exit());
tell({ type: 'loaded' });

function begin() {
  log = openEffectLog(job.logPath, job.worker, (line) => job.echo && tell({ type: 'line', line }));
  opened = openStore({ kind: job.storeKind, folder: job.storeFolder, ports: { clock: turnClock } });
  const recovered = recoveries(job.worker);
  const store = observedStore(opened, {
    log,
    fault: job.storeFault,
    beforeSave,
    beforeLease: recovered.enter,
  });
  agent = scriptedAgent({ ...job.agent, clockAheadMs: job.clockAheadMs, store, log, gates });
  if (job.recover !== undefined) recover(recovered);
  tell({ type: 'ready' });
}

function recover({ opOf }) {
  const ended = (session, outcome) =>
    currentOperation.run({ op: opOf(session), session }, () => log.write({ kind: 'op.ended', outcome }));
  agent.recover({
    ...job.recover,
    onRecovered: ({ checkpointId }, { finishReason }) =>
      ended(checkpointId, { type: 'resolved', finishReason }),
    onError(error, run) {
      if (error.code === 'LOUSHO_RECOVERY_EXHAUSTED')
        log.write({ kind: 'run.parked', session: run.sessionId, starts: error.details.starts });
      else if (run === undefined) throw error;
      else ended(run.checkpointId, rejected(error));
    },
  });
}

async function beforeSave({ approvals }) {
  if (!job.holdDecisions || !approvals.some(({ decision }) => decision !== undefined)) return;
  tell({ type: 'holding', gate: 'decision' });
  await gates.passed('decision');
}

async function perform({ op, session, action }) {
  await currentOperation.run({ op, session }, async () => {
    log.write({ kind: 'op.began', action: action.type, inputId: action.inputId });
    const outcome = await outcomeOf(() => performAction(op, session, action));
    log.write({ kind: 'op.ended', outcome });
    tell({ type: 'ended', op, outcome });
  });
}

async function performAction(op, session, action) {
  switch (action.type) {
    case 'send':
      return agent.send(`Input ${action.inputId}`, { sessionId: session, inputId: action.inputId });
    case 'once': {
      const result = await agent.runOnce(session, `Input ${action.inputId}`, { inputId: action.inputId });
      return { ...result, told: result };
    }
    case 'resume':
      return agent.resume(session);
    case 'decide':
      return decide(op, session, action);
    case 'say': {
      const options = action.isRetried ? { inputId: action.inputId } : {};
      const chat = agent.session({ id: session, turnPolicy: action.turnPolicy });
      const { finishReason, text, runId } = await chat.send(`Input ${action.inputId}`, options);
      return { finishReason, told: { text, runId } };
    }
    case 'clear':
      await agent.session({ id: session }).clear();
      return { finishReason: 'cleared' };
    case 'fork':
      await agent
        .session({ id: session })
        .fork({ fromStep: action.fromStep, newSessionId: action.newSessionId });
      return { finishReason: 'forked' };
    case 'look':
      return { finishReason: 'looked', pending: await agent.pending() };
    default:
      throw new Error(`Unknown action ${action.type}`);
  }
}

/** The `index`-th approval that waits, or the one that is named. */
async function decide(op, session, { approved, index = 0, approvalId }) {
  const waiting = await agent.approvals.list({ sessionId: session });
  const asked = waiting.at(index % Math.max(waiting.length, 1));
  const id = approvalId ?? asked?.id;
  if (id === undefined) return null;
  const { toolCallId: callId, args } = waiting.find((approval) => approval.id === id) ?? {};
  log.write({
    kind: 'op.decided',
    session: checkpointIdOfApproval(id),
    approvalId: id,
    callId,
    args,
    approved,
  });
  return agent.approvals.resolve({ id, approved, by: op });
}

async function outcomeOf(action) {
  try {
    const result = await action();
    return {
      type: 'resolved',
      finishReason: result?.finishReason ?? 'nothing',
      approvalIds: result?.approvalIds,
      pending: result?.pending,
      told: result?.told,
    };
  } catch (error) {
    return rejected(error);
  }
}

function rejected({ code, message, cause, details }) {
  return { type: 'rejected', code, message, details, cause: cause?.message };
}

async function end() {
  await agent.shutdown();
  await opened.close();
  log.write({ kind: 'worker.left' });
  process.disconnect();
}

function tell(message) {
  if (process.connected) process.send(message);
}

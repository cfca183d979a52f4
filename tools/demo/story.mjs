// The plain demo: killed once in the middle of a tool, resumed, paused for a person, finished.
import { createInterface } from 'node:readline/promises';
import { runWorker } from './processes.mjs';
import * as screen from './screen.mjs';
import { describeCall, describeRun, readRun } from './stored-run.mjs';

const ORDERS = [1042];
const PACE = { modelMs: 400, chargeMs: 250, shipMs: 1_500, emailMs: 250, refundMs: 300 };

export async function tellStory({ folder, yes }) {
  const starts = [];
  const start = async (task, killAt) => {
    const number = starts.length + 1;
    starts.push({ process: number, stored: await readRun(folder) });
    const job = { folder, number, orders: ORDERS, pace: PACE, task };
    return runWorker(job, { onMessage: (message, pid) => report(message, number, pid), killAt });
  };

  screen.heading('1. An agent handles an order, and its process is killed');
  await start({ type: 'continue' }, { isReached: inTheMiddleOfShipping(), delayMs: 0 });
  screen.event('SIGKILL: the process is gone, in the middle of ship_order', screen.red);

  screen.heading('2. What the store holds now');
  for (const line of describeRun(await readRun(folder))) screen.detail(line);

  screen.heading('3. A new process finds the run and goes on');
  const paused = await start({ type: 'continue' });

  screen.heading('4. A person decides');
  const [approval] = paused.approvals;
  const approved = await ask(approval, yes);

  screen.heading('5. A third process carries the decision out');
  const finished = await start({ type: 'decide', id: approval.id, approved });
  screen.detail(finished.text);
  return { orders: ORDERS, starts, isApproved: () => approved };
}

/** Shipping has begun, and the e-mail beside it has its result in the store. Both are the process's own signals. */
function inTheMiddleOfShipping() {
  let isShipping = false;
  let isEmailSent = false;
  return ({ type, toolName }) => {
    if (type === 'tool.began' && toolName === 'ship_order') isShipping = true;
    if (type === 'tool.done' && toolName === 'send_email') isEmailSent = true;
    return isShipping && isEmailSent && type === 'checkpoint.saved';
  };
}

export function report(message, number, pid) {
  switch (message.type) {
    case 'pending':
      screen.event(`process ${number} (pid ${pid}) asks agent.pending()`, screen.bold);
      screen.detail(
        message.run === undefined ? 'no unfinished run: agent.send()' : describePending(message.run),
      );
      break;
    case 'deciding':
      screen.event(`process ${number} (pid ${pid}) calls agent.approvals.resolve()`, screen.bold);
      break;
    case 'busy':
      screen.event('the run is still leased to the dead process; trying again');
      break;
    case 'model.answered':
      screen.event(`model answers ${message.step}: ${message.calls.join(' + ') || 'text'}`);
      break;
    case 'tool.began':
      screen.event(
        `${message.toolName} begins${message.rerun ? ' again, with the same idempotency key' : ''}`,
      );
      break;
    case 'tool.done':
      screen.event(`${message.toolName} has its result`);
      break;
    case 'tool.error':
      screen.event(`${message.toolName} gets an error result (${message.kind})`);
      break;
    case 'approval.requested':
      screen.event(`${message.toolName} waits for a person; the run is stored`, screen.yellow);
      break;
    case 'result':
      screen.event(`process ${number} ends: ${message.finishReason}`);
      break;
    default:
  }
}

function describePending({ sessionId, status, step }) {
  return `found "${sessionId}": ${status} at step ${step}: agent.resume()`;
}

/** Without a terminal nobody can answer, so the demo does, and says so. */
export async function ask(approval, yes) {
  screen.event(describeCall(approval), screen.yellow);
  if (yes || process.stdin.isTTY !== true) {
    screen.detail(`Run it? yes ${yes ? '(--yes)' : '(nobody to ask: the input is no terminal)'}`);
    return true;
  }
  const terminal = createInterface({
    input: process.stdin,
    output: process.stdout,
    prompt: '           Run it? yes or no: ',
  });
  terminal.once('SIGINT', () => process.emit('SIGINT'));
  try {
    terminal.prompt();
    for await (const line of terminal) {
      const word = line.trim().toLowerCase();
      if (['y', 'yes'].includes(word)) return true;
      if (['n', 'no'].includes(word)) return false;
      terminal.prompt();
    }
    // The input ended, and nobody said yes.
    return false;
  } finally {
    terminal.close();
  }
}

// The demo with a real model: killed in the middle of the first tool that the model calls, resumed, and decided by a person as often as the
// model asks. What it calls, and how often, is its own.
import { runWorker } from './processes.mjs';
import * as screen from './screen.mjs';
import { describeRun, readRun } from './stored-run.mjs';
import { ask, report } from './story.mjs';

const ORDERS = [1042];
const PACE = { modelMs: 0, chargeMs: 400, shipMs: 1_500, emailMs: 400, refundMs: 300 };
/** A model that asks for ever is not waited for. */
const MAX_DECISIONS = 10;

export async function tellLiveStory({ folder, yes, live }) {
  const starts = [];
  const approvedIds = new Set();
  const start = async (task, killAt) => {
    const number = starts.length + 1;
    starts.push({ process: number, stored: await readRun(folder) });
    const job = { folder, number, orders: ORDERS, pace: PACE, task, live };
    return runWorker(job, { onMessage: (message, pid) => report(message, number, pid), killAt });
  };

  screen.heading(`1. ${live.modelId} handles an order, and its process is killed`);
  let ended = await start({ type: 'continue' }, { isReached: isInTheMiddleOfTool, delayMs: 100 });
  if (ended.type === 'killed') {
    screen.event(`SIGKILL: the process is gone, in the middle of ${ended.message.toolName}`, screen.red);
    screen.heading('2. What the store holds now');
    for (const line of describeRun(await readRun(folder))) screen.detail(line);
    screen.heading('3. A new process finds the run and goes on');
    ended = await start({ type: 'continue' });
  } else screen.event('the model called no tool that could be killed', screen.yellow);

  for (let decisions = 0; ended.finishReason === 'awaiting-approval'; decisions += 1) {
    if (decisions === MAX_DECISIONS)
      throw new Error(`The model asked for more than ${MAX_DECISIONS} refunds.`);
    screen.heading('A person decides, and another process carries it out');
    const [approval] = ended.approvals;
    const approved = await ask(approval, yes);
    if (approved) approvedIds.add(approval.id);
    ended = await start({ type: 'decide', id: approval.id, approved });
  }
  screen.detail(ended.text);
  return { starts, approvedIds };
}

/** What a person must agree to is not begun here: it would not be tried again. */
function isInTheMiddleOfTool({ type, toolName }) {
  return type === 'tool.began' && toolName !== 'refund';
}

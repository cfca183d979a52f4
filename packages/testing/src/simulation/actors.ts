/** The people of a simulated world: who sends, who decides, and who goes on with what only a person may go on with. */
import { textOf, type ApprovalRequest, type ExecutionResult, type Message } from '@lousho/contract';
import type { ConversationPlan, InputPlan } from './plan.ts';
import type { Outcome, RunningProcess, World } from './world.ts';

/** What callers of one conversation were given. */
export interface Given {
  readonly results: ExecutionResult[];
  readonly joined: Set<string>;
}

/** Until each input is surely accepted, one behind the other. */
export async function talk(world: World, plan: ConversationPlan, given: Given): Promise<void> {
  for (const input of plan.inputs) {
    await world.time.sleep(Math.max(0, input.atMs - world.time.nowMs));
    await Promise.all(
      Array.from({ length: input.senders }, (_, count) =>
        sendUntilAccepted(world, plan, input, given, count),
      ),
    );
  }
}

/** Another process is asked when one does not answer, as callers do. */
async function sendUntilAccepted(
  world: World,
  plan: ConversationPlan,
  input: InputPlan,
  given: Given,
  count: number,
): Promise<void> {
  const { random, time } = world;
  await time.sleep(random.below(count === 0 ? 1 : 3_000));
  let isFirst = count === 0;
  for (;;) {
    const running = world.anyRunning();
    if (running !== undefined) {
      const outcome = await send(world, running, plan, input, given, isFirst);
      isFirst = false;
      if (outcome.type === 'resolved') {
        if (outcome.value.finishReason !== 'aborted') given.results.push(outcome.value);
        if (await isAccepted(world, plan, input, outcome.value)) return;
      }
    }
    await time.sleep(500 + random.below(world.isCalm ? 5_000 : 20_000));
  }
}

/** Whoever stops a run before it has begun knows that nothing happened; one that is stored may rest as it is. */
async function isAccepted(
  { store, random }: World,
  { id, kind }: ConversationPlan,
  { text }: InputPlan,
  { finishReason, messages }: ExecutionResult,
): Promise<boolean> {
  if (finishReason !== 'aborted') return says(messages, text);
  const kept = kind === 'run' ? await store.checkpoints?.load(id) : await store.sessions?.load(id);
  return says(kept?.messages ?? [], text) && random.chance(0.5);
}

function says(messages: readonly Message[], text: string): boolean {
  return messages.some((message) => message.role === 'user' && textOf(message) === text);
}

function send(
  world: World,
  running: RunningProcess,
  { id, kind }: ConversationPlan,
  input: InputPlan,
  given: Given,
  isFirst: boolean,
): Promise<Outcome<ExecutionResult>> {
  const { inputId, text, door, abortAfterMs } = input;
  const stopping = new AbortController();
  const signal = isFirst && abortAfterMs !== undefined ? stopping.signal : undefined;
  if (signal !== undefined)
    world.time.in(abortAfterMs ?? 0, () => running.process.deliver(() => stopping.abort()));
  return world.request(running, `${door} "${text}"${signal === undefined ? '' : ', to abort it'}`, () => {
    const { agent } = running;
    if (door === 'once') return agent.runOnce(id, text, { inputId, signal });
    const target = kind === 'session' ? agent.session({ id }) : agent;
    const options = { ...(kind === 'run' ? { sessionId: id } : undefined), inputId, signal };
    if (door === 'send' || !isFirst) return target.send(text, options);
    const handle = target.stream(text, options);
    for (const more of input.more)
      world.time.in(more.afterMs, () =>
        running.process.deliver(() => {
          world.trace.note(running.process.name, `${more.way} "${more.text}"`);
          void handle[more.way](more.text).joined.then((isJoined) => {
            if (isJoined && running.process.isAlive) given.joined.add(more.text);
          });
        }),
      );
    return handle.result;
  });
}

/** Looks into the inbox again and again, and decides what lies there; now and then two people decide the same. */
export async function decide(world: World, isOver: () => boolean): Promise<void> {
  const { random, time } = world;
  while (!isOver()) {
    await time.sleep(1_000 + random.below(world.isCalm ? 4_000 : 20_000));
    const running = world.anyRunning();
    if (running === undefined) continue;
    const listed = await world.request(running, 'looks into the inbox', () => running.agent.approvals.list());
    if (listed.type !== 'resolved' || listed.value.length === 0) continue;
    const request = random.pick(listed.value);
    const deciders = random.chance(0.3) ? 2 : 1;
    await Promise.all(Array.from({ length: deciders }, () => decideOne(world, request)));
  }
}

async function decideOne(world: World, request: ApprovalRequest): Promise<void> {
  const { random } = world;
  const running = world.anyRunning();
  if (running === undefined) return;
  const approved = random.chance(0.7);
  const changes = approved && request.kind === 'tool' && !isAgents(request) && random.chance(0.2);
  const args = { ms: random.below(1_000), heedsSignal: false, changed: true };
  await world.request(
    running,
    `${approved ? 'approves' : 'rejects'} ${request.id}`,
    (op) =>
      running.agent.approvals.resolve({
        ...{ id: request.id, approved, by: op },
        ...(changes ? { args } : undefined),
      }),
    { approvalId: request.id },
  );
}

/** A call of the agent's own tools, which take other arguments. */
function isAgents({ toolName }: ApprovalRequest): boolean {
  return toolName === 'task' || toolName.startsWith('handoff_to_');
}

/** When all is calm: goes on with what `recover()` must leave to a person. Resolves when nothing is pending and nobody says more. */
export async function untilOver(world: World, hasSaidAll: () => boolean): Promise<void> {
  const { time, random } = world;
  for (;;) {
    await time.sleep(3_000 + random.below(3_000));
    const running = world.anyRunning();
    if (!world.isCalm || running === undefined) continue;
    const isLast = hasSaidAll();
    const listed = await world.request(running, 'looks what is pending', () => running.agent.pending());
    if (listed.type !== 'resolved') continue;
    if (listed.value.length === 0 && isLast) return;
    for (const { sessionId, kind, aborted, parked, lastError } of listed.value) {
      const isForAPerson = aborted === true || parked === true || lastError?.retryable === false;
      if (!isForAPerson) continue;
      await world.request(running, `resumes ${sessionId}`, () => running.agent.resume(sessionId, { kind }));
    }
  }
}

/** A turn that is over and that the store would not record is recorded by whoever opens its conversation next. */
export async function openConversations(world: World): Promise<void> {
  for (const { id, kind } of world.plan.conversations) {
    if (kind === 'run') continue;
    for (;;) {
      const running = world.anyRunning();
      const opened =
        running && (await world.request(running, `opens ${id}`, () => running.agent.resume(id, { kind })));
      if (opened?.type === 'resolved') break;
      await world.time.sleep(1_000);
    }
  }
}

/** Random stories with crashes, aborts, failures and people: the promises hold in each. `LOUSHO_SEED` replays one, `LOUSHO_CASES` sets how many. */
import { textOf, type Checkpoint } from '@lousho/contract';
import { transcriptProblems } from '@lousho/testing';
import { expect, it } from 'vitest';
import { caseCount, fc, seed } from './properties.ts';
import { story, type Story } from './random-stories.ts';
import { StoryTeller } from './story-teller.ts';

const CASES = caseCount(2_000);

it(
  `keeps every promise over ${CASES} random stories (LOUSHO_SEED=${seed})`,
  async () => {
    console.log(`Random stories: LOUSHO_SEED=${seed} LOUSHO_CASES=${CASES}`);
    await fc.assert(fc.asyncProperty(story(), keepsEveryPromise), { numRuns: CASES });
  },
  10 * 60_000,
);

async function keepsEveryPromise(planned: Story): Promise<void> {
  const teller = new StoryTeller(planned);
  const end = await teller.play();
  expect(teller.problems).toEqual([]);
  expect(transcriptProblems(end.messages)).toEqual([]);
  expect(end).toMatchObject({ settledResults: [], heldInput: [], approvals: [], startedToolCallIds: [] });
  const ended = planned.steps[responses(end.messages) - 1] === undefined ? 'stop' : 'max-steps';
  expect(end).toMatchObject({ status: 'finished', finishReason: ended });
  checkWords(end, teller);
  checkUsage(end, teller);
}

/** Whatever was stored once is there, once. */
function checkWords({ messages }: Checkpoint, { takenWords }: StoryTeller): void {
  const words = messages.filter(({ role }) => role === 'user').map(textOf);
  expect(new Set(words).size).toBe(words.length);
  expect([...words].sort()).toEqual([...takenWords].sort());
  const inputs = words
    .filter((text) => text.startsWith('words'))
    .map((text) => Number(text.slice('words'.length)));
  expect(inputs).toEqual([...inputs].sort((a, b) => a - b));
}

/** Every response is counted once; beside them only calls that were given up. */
function checkUsage(
  { messages, runInput, usage, stepIndex }: Checkpoint,
  { droppedCalls }: StoryTeller,
): void {
  const answered = responses(messages.slice(runInput.start));
  expect(stepIndex).toBe(answered);
  expect(usage.modelCalls).toBeGreaterThanOrEqual(answered);
  expect(usage.modelCalls).toBeLessThanOrEqual(answered + droppedCalls);
}

function responses(messages: Checkpoint['messages']): number {
  return messages.filter(({ role }) => role === 'assistant').length;
}

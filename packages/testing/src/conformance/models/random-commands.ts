/** Runs random commands against a store, and says which ones when an answer is not the model's. */
import { Mismatch } from '../failure.ts';
import { seededRandom, type SeededRandom } from '../seeded-random.ts';

/** One call of the store and the comparison with what the model says. */
export interface Command {
  /** For example `h1.save("run-a", step 2)`. */
  readonly text: string;
  run(): Promise<void>;
}

/** Enough that every pair of commands meets in every order; the same ones each time, so that a failure comes back. */
const SEEDS = [1, 2, 3];
const COMMANDS_A_SEED = 120;
/** The others are made again from the seed. */
const SHOWN_COMMANDS = 40;

/** @param begin makes the model and the handles for one seed, and gives what comes next each time it is asked. */
export async function runRandomCommands(
  begin: (random: SeededRandom, seed: number) => Promise<() => Command>,
): Promise<void> {
  for (const seed of SEEDS) {
    const next = await begin(seededRandom(seed), seed);
    const done: string[] = [];
    while (done.length < COMMANDS_A_SEED) {
      const command = next();
      done.push(command.text);
      try {
        await command.run();
      } catch (error) {
        throw withCommands(error, seed, done);
      }
    }
  }
}

function withCommands(error: unknown, seed: number, done: readonly string[]): Mismatch {
  const { expected, actual, hint } =
    error instanceof Mismatch
      ? error
      : {
          expected: 'the command resolves',
          actual: error,
          hint: 'No command of a model may be refused by an error.',
        };
  const shown = done
    .slice(-SHOWN_COMMANDS)
    .map((text, index, { length }) => `${done.length - length + index + 1}. ${text}`);
  const hidden = done.length - shown.length;
  return new Mismatch(
    expected,
    actual,
    `${hint} Seed ${seed}, command ${done.length}, the last of these:\n` +
      [...(hidden > 0 ? [`(${hidden} before)`] : []), ...shown].join('\n'),
  );
}

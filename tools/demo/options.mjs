// What can be given to `npm run demo -- ...`. A wrong option is answered with a sentence, not with a stack trace.
import { parseArgs } from 'node:util';

export const usage = `Usage: npm run demo -- [options]

An agent handles an order with tools that charge, ship, e-mail and refund. Its
process is killed with SIGKILL in the middle of a tool. A new process finds the
run in the store and goes on. At the end the demo checks what really happened.

  --yes            answers the approval with yes instead of asking you; with
                   --crashes nobody is asked, the seed decides
  --crashes <n>    a longer run, killed n times at random moments (1 to 200)
  --seed <n>       with --crashes: which moments (0 to 4294967295)
  --live           with a real model, if the environment has OPENAI_API_KEY,
                   ANTHROPIC_API_KEY or OPENAI_BASE_URL
  --model <id>     with --live: which model of that service
  --keep           keeps the folder with the databases and the e-mails
  --help           shows this text
`;

const MAX_CRASHES = 200;
const MAX_SEED = 0xffff_ffff;

/**
 * `{ type: 'help' }`, `{ type: 'story', ... }`, `{ type: 'live', ... }`, `{ type: 'crashes', ... }`, or `{ type: 'wrong', reason }`.
 */
export function readOptions(args) {
  const parsed = parse(args);
  if (parsed.reason !== undefined) return wrong(parsed.reason);
  const { yes = false, keep = false, help = false, live = false, crashes, seed, model } = parsed.values;
  if (help) return { type: 'help' };
  if (seed !== undefined && crashes === undefined)
    return wrong('--seed chooses the moments of --crashes; give both.');
  if (model !== undefined && !live) return wrong('--model chooses the model of --live; give both.');
  if (live && crashes !== undefined) return wrong('--live is killed once; give it without --crashes.');
  if (live) return { type: 'live', yes, keep, model };
  if (crashes === undefined) return { type: 'story', yes, keep };
  const crashCount = wholeNumber(crashes, 1, MAX_CRASHES);
  if (crashCount === undefined)
    return wrong(`--crashes must be a whole number from 1 to ${MAX_CRASHES}; got "${crashes}".`);
  const seedNumber =
    seed === undefined ? Math.floor(Math.random() * 100_000) : wholeNumber(seed, 0, MAX_SEED);
  if (seedNumber === undefined)
    return wrong(`--seed must be a whole number from 0 to ${MAX_SEED}; got "${seed}".`);
  return { type: 'crashes', crashCount, seed: seedNumber, keep };
}

function parse(args) {
  try {
    return parseArgs({
      args,
      options: {
        yes: { type: 'boolean' },
        keep: { type: 'boolean' },
        live: { type: 'boolean' },
        model: { type: 'string' },
        help: { type: 'boolean', short: 'h' },
        crashes: { type: 'string' },
        seed: { type: 'string' },
      },
    });
  } catch (error) {
    // Node adds advice about positional arguments behind the first sentence.
    return { reason: `${error.message.split(/\. |\n/, 1)[0].replace(/\.$/, '')}.` };
  }
}

function wrong(reason) {
  return { type: 'wrong', reason };
}

function wholeNumber(text, least, most) {
  const number = /^\d+$/.test(text) ? Number(text) : NaN;
  return number >= least && number <= most ? number : undefined;
}

// `npm run demo`: an agent with real effects, killed with SIGKILL and resumed, and a check of what happened. See options.mjs for the
// options. Exit code 0: everything held. 1: it did not. 2: wrong options, or no model for `--live`.
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { checkOutcome } from './check.mjs';
import { surviveCrashes } from './crashes.mjs';
import { withPlantedFault } from './faults.mjs';
import { openLedger } from './ledger.mjs';
import { readOptions, usage } from './options.mjs';
import { checkLiveOutcome } from './live-check.mjs';
import { tellLiveStory } from './live-story.mjs';
import { ModelFailed, killCurrentWorker } from './processes.mjs';
import * as screen from './screen.mjs';
import { readRun } from './stored-run.mjs';
import { tellStory } from './story.mjs';

const stories = { story: tellStory, crashes: surviveCrashes, live: tellLiveStory };

const options = readOptions(process.argv.slice(2));
switch (options.type) {
  case 'help':
    screen.plain(usage);
    break;
  case 'wrong':
    console.error(`${options.reason}\n\n${usage}`);
    process.exitCode = 2;
    break;
  case 'live':
    await goLive(options);
    break;
  default:
    process.exitCode = (await demonstrate(options)) ? 0 : 1;
}

async function goLive({ model, ...others }) {
  const { findLiveModel, howToGoLive } = await import('./live-model.mjs');
  const live = await findLiveModel(model).catch(({ message }) => ({ reason: message }));
  if (live?.modelId === undefined) {
    console.error(live?.reason ?? howToGoLive);
    process.exitCode = 2;
    return;
  }
  screen.plain(`The model is ${live.modelId} (${live.service}).`);
  process.exitCode = (await demonstrate({ ...others, live })) ? 0 : 1;
}

async function demonstrate(options) {
  const folder = mkdtempSync(path.join(tmpdir(), 'lousho-demo-'));
  const cleanUp = () => {
    killCurrentWorker();
    if (!options.keep) rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  };
  for (const [signal, exitCode] of [
    ['SIGINT', 130],
    ['SIGTERM', 143],
  ])
    process.once(signal, () => {
      cleanUp();
      process.exit(exitCode);
    });
  try {
    const outcome = await stories[options.type]({ folder, ...options });
    const isFine = await check(folder, outcome, options.type === 'live' ? checkLiveOutcome : checkOutcome);
    if (options.keep)
      screen.plain(`Kept in ${path.relative(process.cwd(), folder)}: runs.db, ledger.db, mail/`);
    return isFine;
  } catch (error) {
    console.error(
      error instanceof ModelFailed ? `\n${error.message}` : `\nThe demo itself failed. ${error.stack}`,
    );
    return false;
  } finally {
    cleanUp();
  }
}

/** With fresh handles: nothing that the demo itself remembers can make it look better than it is. */
async function check(folder, outcome, checkAll) {
  const ledger = openLedger(folder);
  const evidence = withPlantedFault({ checkpoint: await readRun(folder), ledger: ledger.read() });
  ledger.close();
  screen.heading('The check, from the store and the ledger');
  const verdicts = checkAll({ ...evidence, ...outcome });
  for (const { ok, text } of verdicts) screen.verdict(ok, text);
  const failures = verdicts.filter(({ ok }) => !ok).length;
  screen.plain(
    failures === 0
      ? `\n${screen.green('Everything held.')}`
      : `\n${screen.red(`${failures} of ${verdicts.length} checks FAILED.`)}`,
  );
  return failures === 0;
}

/** What a person gives to compare: a file with a run in it, or the id of a run or session of the store. */
import path from 'node:path';
import { isMessage, parseCheckpoint, type Checkpoint, type Message } from '@lousho/contract';
import { CliError } from './cli-error.ts';
import type { Context } from './context.ts';
import { fixtureOf, FIXTURE_FORMAT, type Fixture } from './fixture.ts';
import { findRun } from './find-run.ts';
import { readText } from './json-argument.ts';
import { isObject } from './load-config.ts';

export type Trajectory = Checkpoint | readonly Message[];

/** @throws CliError LOUSHO_CLI_USAGE, LOUSHO_CLI_RUN_NOT_FOUND; LOUSHO_CHECKPOINT_CORRUPT; what the store throws */
export async function readTrajectory(context: Context, reference: string): Promise<Trajectory> {
  return isFile(reference)
    ? ofFile(path.resolve(context.cwd, reference))
    : (await fixtureFrom(context, reference)).run;
}

/** A run, the unfinished turn of a session, or what was said in a session. @throws as above, but for files */
export async function fixtureFrom(context: Context, id: string): Promise<Fixture> {
  const found = await findRun(await context.store(), id);
  if (found.type === 'run') return fixtureOf(id, found.checkpoint, found.checkpoint.runInput);
  const { messages, lastTurn } = found.session;
  return fixtureOf(id, messages, lastTurn?.runInput ?? { start: 0, count: 0 });
}

/** An id has no slash; one that ends in .json is given as `./that.json` when it is a file, and never the other way round. */
function isFile(reference: string): boolean {
  return /[/\\]/.test(reference) || reference.endsWith('.json');
}

function ofFile(file: string): Trajectory {
  const json = parseJson(readText(file, 'The file'), file);
  if (Array.isArray(json) && json.every(isMessage)) return json;
  if (!isObject(json)) throw noTrajectory(file);
  if (json.lousho === 'fixture') {
    if (json.format !== FIXTURE_FORMAT)
      throw new CliError('LOUSHO_CLI_USAGE', `"${file}" is a fixture of another release.`);
    const { run } = json;
    return Array.isArray(run) && run.every(isMessage) ? run : parseCheckpoint(run, file);
  }
  if (!Array.isArray(json.messages)) throw noTrajectory(file);
  return parseCheckpoint(json, file);
}

function parseJson(text: string, file: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (error) {
    throw new CliError('LOUSHO_CLI_USAGE', `"${file}" is no JSON.`, { cause: error });
  }
}

function noTrajectory(file: string): CliError {
  return new CliError(
    'LOUSHO_CLI_USAGE',
    `"${file}" holds neither a fixture, nor a checkpoint, nor messages.`,
    {
      hint: 'lousho export --fixture <id> --out <file> makes one from a stored run.',
    },
  );
}

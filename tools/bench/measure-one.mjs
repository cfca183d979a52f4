/**
 * One measurement in a process of its own; prints its figures as one line of JSON.
 *
 *     node measure-one.mjs <contestant:variant> <scenario with its numbers> <directory> [prepare]
 *     node --cpu-prof measure-one.mjs lousho:sqlite 'sequence 1000' "$(mktemp -d)"
 *
 * `prepare` makes what the scenario starts from; the process then exits without closing anything, as a crash does.
 */
import { existsSync, writeSync } from 'node:fs';
import path from 'node:path';
import { scenarios } from './scenarios.mjs';

const [contestant, scenario, directory, phase = 'measure'] = process.argv.slice(2);
const [name, variant] = contestant.split(':');
const [scenarioName, ...numbers] = scenario.split(' ');

// Those of peers/ have packages of their own.
const folder = existsSync(path.join(import.meta.dirname, `contestants/${name}.mjs`)) ? '.' : './peers';
const { load } = await import(`${folder}/contestants/${name}.mjs`);
const open = await load(variant);
const figures = await scenarios[scenarioName][phase](open, directory, ...numbers.map(Number));
writeSync(1, `\n${JSON.stringify(figures ?? {})}\n`);
process.exit(0);

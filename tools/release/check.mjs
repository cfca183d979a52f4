// `npm run release:check`: does with a copy of the checkout what a release does, up to a registry on loopback, and then what the users of
// each package do. Takes ten minutes to half an hour, and most of a gigabyte of the temporary folder meanwhile.
//
//   --only core,cli    tries these packages alone (all are published)
//   --json FILE        writes the results there, too
//
// Ends with 1 when anything failed. What could not be tried is `skipped`, with the reason.
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { parseArgs } from 'node:util';
import { copyCheckout } from './checkout-copy.mjs';
import { setExampleRanges } from './example-ranges.mjs';
import { examples, startExample } from './examples.mjs';
import { nameRepository } from './name-repository.mjs';
import { findNodes } from './nodes.mjs';
import { publicPackages, readManifest } from './packages.mjs';
import { programs } from './programs.mjs';
import * as project from './project.mjs';
import { startRegistry } from './registry.mjs';
import { Report, sizeTable } from './report.mjs';
import { eachInParallel, run } from './run.mjs';
import { measureSizes } from './sizes.mjs';

const root = path.resolve(import.meta.dirname, '../..');
const startedAtMs = Date.now();
const { values: options } = parseArgs({ options: { only: { type: 'string' }, json: { type: 'string' } } });
const work = mkdtempSync(path.join(tmpdir(), 'lousho-release-'));
const copy = path.join(work, 'checkout');
const report = new Report(say);
const isNamed = readManifest(root).repository !== undefined;
let registry;
let sizes = [];

process.once('exit', () => rmSync(work, { recursive: true, force: true }));
for (const signal of ['SIGINT', 'SIGTERM']) process.once(signal, () => process.exit(130));

try {
  await prepareRelease();
  registry = await startRegistry(path.join(work, 'registry'));
  await publish();
  const nodes = await findNodes();
  await eachInParallel(wantedPackages(), (published) => tryPackage(published, nodes));
  if (options.only === undefined) {
    say('starting the examples');
    await eachInParallel(examples, tryExample);
    say('measuring sizes');
    sizes = await measureSizes(path.join(work, 'sizes'), registry);
  }
} catch (error) {
  report.fail('the release', 'steps', error.message);
} finally {
  await registry?.stop();
}
tell();

/* ── The release ── */

async function prepareRelease() {
  say('copying the checkout');
  if (!existsSync(path.join(import.meta.dirname, 'node_modules/verdaccio')))
    await run('npm', ['ci', '--no-audit', '--no-fund'], { cwd: import.meta.dirname });
  await copyCheckout(root, copy);
  // A reserved name that leads nowhere, in the copy alone.
  if (!isNamed) nameRepository(copy, 'git+https://example.invalid/lousho.git');
  say('raising versions');
  await run('npx', ['changeset', 'version'], { cwd: copy });
  setExampleRanges(copy);
  say('building');
  await run('npx', ['nx', 'run-many', '-t', 'build'], { cwd: copy, env: { NX_SKIP_NX_CACHE: 'true' } });
}

async function publish() {
  say('publishing');
  writeFileSync(path.join(copy, '.npmrc'), registry.npmrc);
  await run('npx', ['changeset', 'publish', '--no-git-tag'], { cwd: copy });
  for (const { name, manifest } of publicPackages(copy))
    await report.try(name, 'published', async () => {
      const found = await run('npm', ['view', `${name}@${manifest.version}`, 'version'], { cwd: copy });
      if (found.trim() !== manifest.version)
        throw new Error(`The registry has no ${name}@${manifest.version}.`);
      if (manifest.version === '0.0.0') throw new Error('No changeset releases it.');
    });
}

function wantedPackages() {
  const only = options.only?.split(',').map((name) => `@lousho/${name}`);
  return publicPackages(copy).filter(({ name }) => only === undefined || only.includes(name));
}

/* ── Its users ── */

async function tryPackage({ name, folder, manifest }, nodes) {
  say(`trying ${name}`);
  await report.try(name, 'publint, attw', () => run('npm', ['run', 'pkgcheck', '-w', name], { cwd: copy }));
  const program = programs[name];
  const place = path.join(work, 'projects', path.basename(folder));
  const isInstalled = await report.try(name, 'install', async () => {
    if (program === undefined) throw new Error('It has no program in tools/release/programs.mjs.');
    await project.installProject(place, registry, [name, ...(program.beside ?? [])]);
    await project.runCommands(place, manifest);
  });
  if (!isInstalled) return;
  for (const resolution of project.moduleResolutions)
    await report.try(name, resolution, () =>
      project.typeCheck(place, program, resolution, path.join(root, 'node_modules')),
    );
  if (program.everywhere) await report.try(name, 'workerd', () => project.runInWorkerd(place, program));
  for (const node of nodes) await tryNode(name, place, program, node);
}

async function tryNode(name, place, program, node) {
  const formats = { esm: `import ${node.major}`, cjs: `require ${node.major}` };
  if (node.missing !== undefined) {
    for (const check of Object.values(formats)) report.skip(name, check, node.missing);
    return;
  }
  for (const [format, check] of Object.entries(formats))
    await report.try(name, check, async () => {
      if (format === 'esm') await project.compileFor(place, node);
      await project.runProgram(place, program, format, node);
    });
}

async function tryExample(name) {
  const place = { copy, folder: path.join(work, 'examples'), registry };
  await report.try(`examples/${name}`, 'start', () => startExample(name, place));
}

/* ── What is told ── */

function say(what) {
  console.error(`[${((Date.now() - startedAtMs) / 1000).toFixed(0)} s] ${what}`);
}

function tell() {
  const seconds = Math.round((Date.now() - startedAtMs) / 1000);
  const counts = Object.fromEntries(
    ['passed', 'failed', 'skipped'].map((outcome) => [outcome, report.count(outcome)]),
  );
  console.log(`\n${report.table()}\n`);
  if (sizes.length > 0) console.log(`${sizeTable(sizes)}\n`);
  if (report.explanations() !== '') console.log(`${report.explanations()}\n`);
  if (!isNamed)
    console.log(
      'package.json names no repository yet: `npm run release` will ask for it (tools/release/name-repository.mjs).\n',
    );
  if (options.json !== undefined)
    writeFileSync(
      options.json,
      `${JSON.stringify({ seconds, counts, results: report.results, sizes }, null, 2)}\n`,
    );
  console.log(`${counts.passed} passed, ${counts.failed} failed, ${counts.skipped} skipped (${seconds} s)`);
  process.exitCode = counts.failed > 0 ? 1 : 0;
}

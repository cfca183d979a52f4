/**
 * `npm run docs:build`: the site of docs/ and of the packages' own pages, in tools/docs-site/dist. Works offline once it is installed.
 *
 * The pages are read where they stand. Only the API reference is made here, from the types, and not committed.
 *
 * `DOCS_BASE=/lousho/` when the site does not lie at the root of its host; `DOCS_SOURCE_URL=https://.../blob/main` makes links to source
 * files, such as the tests of the guarantees, lead there. `npm run docs:serve` shows the site.
 */
import { spawnSync } from 'node:child_process';
import { existsSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import path from 'node:path';

const site = import.meta.dirname;
const dist = path.join(site, 'dist');
const serves = process.argv.includes('--serve');

rmSync(dist, { recursive: true, force: true });
if (!isInstalled()) run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund']);
const { writeApiPages } = await import('./api-pages.mjs');
await writeApiPages(path.join(site, 'api'));
vitepress('build');

const loads = readdirSync(dist, { recursive: true }).flatMap(whatItLoadsFromElsewhere);
if (loads.length > 0) throw new Error(`The site must load nothing from elsewhere:\n${loads.join('\n')}`);
console.log(`The site is in ${path.relative(process.cwd(), dist)}.`);
if (serves) vitepress('preview');

/** npm writes `node_modules/.package-lock.json` at the end of an install. */
function isInstalled() {
  const [installed, wanted] = ['node_modules/.package-lock.json', 'package-lock.json'].map((name) =>
    path.join(site, name),
  );
  return existsSync(installed) && statSync(installed).mtimeMs >= statSync(wanted).mtimeMs;
}

/** Scripts, styles, fonts and images of another host. A link that a reader clicks is none of these. */
function whatItLoadsFromElsewhere(name) {
  const file = path.join(dist, name);
  if (!/\.(html|css)$/.test(name)) return [];
  const text = readFileSync(file, 'utf8');
  const loading =
    /<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)="(?:https?:)?\/\/[^"]*"|(?:url\(|@import )["']?(?:https?:)?\/\/[^)"']*/g;
  return [...text.matchAll(loading)].map(([found]) => `${name}: ${found}`);
}

function vitepress(command) {
  run(process.execPath, ['node_modules/vitepress/bin/vitepress.js', command]);
}

function run(command, commandArguments) {
  // An option given to the outer npm, as `-w`, is not meant for this install.
  const env = Object.fromEntries(
    Object.entries(process.env).filter(([key]) => !key.startsWith('npm_config_')),
  );
  const { status, error } = spawnSync(command, commandArguments, { cwd: site, env, stdio: 'inherit' });
  if (status !== 0) throw new Error(`${command} ${commandArguments.join(' ')} failed.`, { cause: error });
}

// A registry on loopback that lives as long as the check. What is ours it has only from us; everything else it gets from the registry that
// npm is set up for on this machine, and keeps no copy.
import { spawn } from 'node:child_process';
import { mkdirSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { createServer } from 'node:net';
import path from 'node:path';
import { setTimeout as wait } from 'node:timers/promises';
import { run } from './run.mjs';

const STARTS_WITHIN_MS = 60_000;

/** @returns `{ url, npmrc, stop }`: `npmrc` is for the folder of each project that uses it */
export async function startRegistry(folder) {
  mkdirSync(folder, { recursive: true });
  const port = await freePort();
  const url = `http://127.0.0.1:${port}/`;
  const upstream = (await run('npm', ['config', 'get', 'registry'], { cwd: folder })).trim();
  const config = path.join(folder, 'config.json');
  // JSON is YAML.
  writeFileSync(config, JSON.stringify(configuration(folder, upstream)));
  const verdaccio = createRequire(import.meta.url).resolve('verdaccio/package.json');
  const child = spawn(
    process.execPath,
    [
      path.join(path.dirname(verdaccio), 'bin/verdaccio'),
      '--config',
      config,
      '--listen',
      `127.0.0.1:${port}`,
    ],
    { stdio: 'ignore' },
  );
  // Also when the check is interrupted.
  process.once('exit', () => child.kill());
  const gone = new Promise((resolve) => child.once('exit', resolve));
  await untilItAnswers(`${url}-/ping`, child);
  return {
    url,
    // npm wants a token, also where everybody may publish.
    npmrc: `registry=${url}\n//127.0.0.1:${port}/:_authToken=local\n`,
    async stop() {
      child.kill();
      await gone;
    },
  };
}

function configuration(folder, upstream) {
  return {
    storage: path.join(folder, 'storage'),
    auth: { htpasswd: { file: path.join(folder, 'htpasswd'), max_users: -1 } },
    uplinks: { upstream: { url: upstream, timeout: '120s', maxage: '30m', cache: false } },
    packages: {
      '@lousho/*': { access: '$all', publish: '$all' },
      '**': { access: '$all', proxy: 'upstream' },
    },
    web: { enable: false },
    max_body_size: '50mb',
    log: { type: 'file', path: path.join(folder, 'log.txt'), format: 'json', level: 'warn' },
  };
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = createServer().once('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

async function untilItAnswers(url, child) {
  const startedAtMs = Date.now();
  while (Date.now() - startedAtMs < STARTS_WITHIN_MS) {
    if (child.exitCode !== null) throw new Error(`The registry ended with ${child.exitCode}.`);
    const answered = await fetch(url).then(
      (response) => response.ok,
      () => false,
    );
    if (answered) return;
    await wait(100);
  }
  child.kill();
  throw new Error('The registry did not answer within a minute.');
}

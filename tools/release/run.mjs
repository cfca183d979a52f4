// Commands in a folder: what they print is kept and shown only when they fail.
import { spawn } from 'node:child_process';
import os from 'node:os';

/** Neither what `npm run` told this process of itself, nor the registry: each project names its own in `.npmrc`. */
const inherited =
  /^(?:npm_config_(?:workspaces?|include_workspace_root|loglevel|registry|json)|npm_package_.*|NODE_OPTIONS)$/i;
const ownEnvironment = Object.fromEntries(
  Object.entries(process.env).filter(([name]) => !inherited.test(name)),
);

/** @throws an error with the end of what it printed, when it fails or takes longer than `timeoutMs` */
export async function run(command, args, { cwd, env = {}, timeoutMs = 600_000 }) {
  const child = spawn(command, args, {
    cwd,
    env: { ...ownEnvironment, NO_COLOR: '1', FORCE_COLOR: '0', ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
    timeout: timeoutMs,
    killSignal: 'SIGKILL',
  });
  const printed = { stdout: '', stderr: '' };
  for (const name of ['stdout', 'stderr'])
    child[name].setEncoding('utf8').on('data', (text) => (printed[name] += text));
  const ended = await new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('close', (status, signal) => resolve(status ?? signal));
  });
  if (ended === 0) return printed.stdout;
  const said = `${printed.stdout}${printed.stderr}`.trim().split('\n').slice(-40).join('\n');
  throw new Error(`${[command, ...args].join(' ')} ended with ${ended}:\n${said}`);
}

/** As many at a time as there are processors: installs and compilers keep one busy each. */
export async function eachInParallel(items, work) {
  const left = [...items];
  const worker = async () => {
    for (let next = left.shift(); next !== undefined; next = left.shift()) await work(next);
  };
  await Promise.all(Array.from({ length: Math.max(1, Math.min(os.availableParallelism(), 4)) }, worker));
}

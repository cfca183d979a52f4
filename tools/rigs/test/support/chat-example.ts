/** The chat of docs/examples/chat as its reader starts it: built by its own script, in a process that may be killed. */
import { spawn, spawnSync, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import fs from 'node:fs';
import { createServer, type AddressInfo } from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { onTestFinished } from 'vitest';
import { ownEnv } from './tarballs.ts';

const example = path.resolve(import.meta.dirname, '../../../../docs/examples/chat');

/** A script of the example. @throws with what it printed */
export function runExample(script: 'build' | 'typecheck'): void {
  const { status, stdout, stderr } = spawnSync('npm', ['run', script], {
    cwd: example,
    encoding: 'utf8',
    env: ownEnv(),
    shell: process.platform === 'win32',
  });
  if (status !== 0) throw new Error(`npm run ${script}: ${stdout}${stderr}`);
}

export interface ExampleChat {
  readonly url: string;
  /** Resolves when it listens. Its model takes `wordMs` over a word. */
  start(options: { readonly wordMs: number; readonly env?: NodeJS.ProcessEnv }): Promise<void>;
  /** With SIGKILL. */
  kill(): Promise<void>;
  /** What was paid back, oldest first. */
  refunds(): readonly unknown[];
}

/** One address and one folder; processes come and go. Not started yet. */
export async function givenExampleChat(): Promise<ExampleChat> {
  const folder = fs.mkdtempSync(path.join(os.tmpdir(), 'lousho-chat-page-'));
  const port = await freePort();
  let server: ChildProcess | undefined;
  const kill = async (): Promise<void> => {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return;
    const gone = once(server, 'close');
    server.kill('SIGKILL');
    await gone;
  };
  onTestFinished(async () => {
    await kill();
    fs.rmSync(folder, { recursive: true, force: true });
  });
  return {
    url: `http://localhost:${port}/`,
    kill,
    async start({ wordMs, env = {} }) {
      server = spawn(process.execPath, ['dist/server.js'], {
        cwd: example,
        env: { ...keyless(), ...env, PORT: String(port), DATA: folder, WORD_MS: String(wordMs) },
        stdio: ['ignore', 'pipe', 'inherit'],
      });
      const [line] = (await Promise.race([once(server.stdout as never, 'data'), once(server, 'exit')])) as [
        unknown,
      ];
      if (!String(line).includes('http://')) throw new Error(`The server is gone: ${String(line)}`);
    },
    refunds() {
      const ledger = path.join(folder, 'refunds.jsonl');
      if (!fs.existsSync(ledger)) return [];
      const lines = fs.readFileSync(ledger, 'utf8').trim().split('\n');
      return lines.map((line): unknown => JSON.parse(line));
    },
  };
}

/** A key that is in the environment would ask a real model. */
function keyless(): NodeJS.ProcessEnv {
  const isOfAModel = /^(?:ANTHROPIC|OPENAI)_|^MODEL$/;
  return Object.fromEntries(Object.entries(ownEnv()).filter(([name]) => !isOfAModel.test(name)));
}

/** The same for each process, so that the page finds the next one. */
async function freePort(): Promise<number> {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

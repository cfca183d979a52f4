/** A process of the demo: the same `send` in each, told by messages how far it is, killed when the story says so. */
import { spawn, type ChildProcess } from 'node:child_process';
import { fileURLToPath } from 'node:url';
import type { FinishReason } from '@lousho/contract';
import { DEMO_INPUT, DEMO_RUN, demoAgent, pause } from './demo-agent.ts';

type Message =
  | { readonly type: 'tool-begins'; readonly tool: string }
  | { readonly type: 'ended'; readonly finishReason: FinishReason };

export interface DemoProcessOptions {
  readonly folder: string;
  /** Kills it in the middle of this tool. */
  readonly killIn?: string | undefined;
  readonly onToolBegins: (tool: string, pid: number) => void;
  readonly signal: AbortSignal;
}
export type DemoProcessEnd =
  | { readonly type: 'killed'; readonly pid: number }
  | { readonly type: 'ended'; readonly pid: number; readonly finishReason: FinishReason };

/** Well inside of a tool, which takes longer. */
const KILL_AFTER_MS = 150;

export async function runDemoProcess(options: DemoProcessOptions): Promise<DemoProcessEnd> {
  const { folder, killIn, onToolBegins, signal } = options;
  const bin = fileURLToPath(new URL('./bin.js', import.meta.url));
  const child = spawn(process.execPath, [bin, 'demo', '--worker', folder], {
    stdio: ['ignore', 'inherit', 'inherit', 'ipc'],
    signal,
    killSignal: 'SIGKILL',
  });
  const pid = child.pid ?? 0;
  let finishReason: FinishReason | undefined;
  child.on('message', (message: Message) => {
    if (message.type === 'ended') finishReason = message.finishReason;
    else {
      onToolBegins(message.tool, pid);
      if (message.tool === killIn) void pause(KILL_AFTER_MS).then(() => child.kill('SIGKILL'));
    }
  });
  const killedBy = await ended(child);
  if (finishReason !== undefined) return { type: 'ended', pid, finishReason };
  if (killedBy === 'SIGKILL') return { type: 'killed', pid };
  throw new Error(`A process of the demo ended before its run did.`);
}

/** What the process itself does: first or fifth, it sends the same input to the same run. */
export async function demoWorker(folder: string): Promise<void> {
  const agent = await demoAgent({
    folder,
    onToolBegins: (tool) => void process.send?.({ type: 'tool-begins', tool } satisfies Message),
  });
  const { finishReason } = await agent.send(DEMO_INPUT, { sessionId: DEMO_RUN, inputId: DEMO_RUN });
  await new Promise<void>((resolve, reject) => {
    const message: Message = { type: 'ended', finishReason };
    if (process.send === undefined) resolve();
    else process.send(message, (error: Error | null) => (error === null ? resolve() : reject(error)));
  });
}

function ended(child: ChildProcess): Promise<NodeJS.Signals | null> {
  return new Promise((resolve, reject) => {
    child.once('error', reject);
    child.once('exit', (_code, by) => resolve(by));
  });
}

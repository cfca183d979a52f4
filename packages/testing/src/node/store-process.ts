/** A store in a child process, as a handle of this one: its methods travel over IPC, and it can be killed, stopped and continued. */
import { spawn, type ChildProcess } from 'node:child_process';
import { isAbsolute } from 'node:path';
import { pathToFileURL } from 'node:url';
import { stripVTControlCharacters } from 'node:util';
import { SDKError, type AgentStore, type ErrorCode, type ErrorDetails } from '@lousho/contract';
import { Mismatch } from '../conformance/failure.ts';
import type { StorageUnderTest } from '../conformance/subject.ts';
import { childProgram, type Order, type Report, type ReportedError, type SaveLoop } from './child-program.ts';

type ChildModule = NonNullable<StorageUnderTest['childProcess']>;

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: unknown) => void;
}

/** A loop of saves that runs in the child. */
export interface RunningLoop {
  /** Number of the last save that was reported as done; `firstNumber - 1` before the first. */
  readonly acknowledged: number;
  /** Numbers of saves that were refused. */
  readonly refused: readonly number[];
  /** What one of its saves threw. */
  readonly failure: unknown;
  /** Resolves once save `number` was acknowledged or the child has ended. Rejects with what a save threw. */
  reached(number: number): Promise<void>;
  /** Resolves when the loop has ended by itself: its saves were refused again and again. */
  readonly ended: Promise<unknown>;
}

export class StoreProcess {
  /** Each call is made in the child. */
  readonly store: AgentStore;
  readonly #child: ChildProcess;
  readonly #onProgress: () => void;
  readonly #waiting = new Map<number, Waiting>();
  readonly #ended: Promise<void>;
  #orders = 0;
  #onAcknowledged: (save: number, saved: boolean) => void = () => undefined;

  private constructor(
    child: ChildProcess,
    ended: Promise<void>,
    methods: MethodsByPart,
    onProgress: () => void,
  ) {
    this.#child = child;
    this.#ended = ended;
    this.#onProgress = onProgress;
    this.store = this.#facade(methods);
    child.on('message', (report: Report) => this.#receive(report));
    void ended.then(() => this.#failWaiting());
  }

  /** @throws Mismatch when the child cannot open the store */
  static async start({ module, options }: ChildModule, onProgress: () => void): Promise<StoreProcess> {
    const url = isAbsolute(module) ? pathToFileURL(module).href : module;
    const child = spawn(process.execPath, ['--input-type=module', '--eval', childProgram(url, options)], {
      stdio: ['ignore', 'ignore', 'pipe', 'ipc'],
      serialization: 'advanced',
    });
    let errors = '';
    child.stderr?.on('data', (text: Buffer) => (errors += text.toString()));
    const ended = whenEnded(child);
    const opened = await Promise.race([
      new Promise<Report>((resolve) => child.once('message', resolve)),
      ended.then(() => undefined),
    ]);
    onProgress();
    if (opened?.kind !== 'opened') {
      child.kill('SIGKILL');
      throw new Mismatch(
        'a child process that opens the store',
        lastWordsOf(errors) || 'it ended without a word',
        `Plain Node must be able to import ${url}, and its default export gets the options of the subject.`,
      );
    }
    return new StoreProcess(child, ended, opened.methods, onProgress);
  }

  get isAlive(): boolean {
    return this.#child.exitCode === null && this.#child.signalCode === null;
  }

  saveOn(loop: SaveLoop): RunningLoop {
    let acknowledged = loop.firstNumber - 1;
    const refused: number[] = [];
    let look = (): void => undefined;
    this.#onAcknowledged = (save, saved) => {
      acknowledged = save;
      if (!saved) refused.push(save);
      look();
    };
    const ended = this.#order({ kind: 'save-on', number: (this.#orders += 1), loop });
    let failure: unknown;
    ended.catch((error: unknown) => (failure = error));
    return {
      get acknowledged() {
        return acknowledged;
      },
      refused,
      ended,
      get failure() {
        return failure;
      },
      reached: async (number) => {
        const reached = new Promise<void>((resolve) => {
          look = () => {
            if (acknowledged >= number) resolve();
          };
          look();
        });
        await Promise.race([reached, ended, this.#ended]);
      },
    };
  }

  /** Ends at once, wherever it is: nothing of it is carried out any more. Resolves when all that it had reported has arrived. */
  async kill(): Promise<void> {
    this.#child.kill('SIGKILL');
    await this.#ended;
  }

  /** Stands still, wherever it is, until it is continued. */
  stop(): void {
    this.#child.kill('SIGSTOP');
  }

  continue(): void {
    this.#child.kill('SIGCONT');
  }

  #receive(report: Report): void {
    this.#onProgress();
    if (report.kind === 'acknowledged') this.#onAcknowledged(report.save, report.saved);
    if (report.kind !== 'answer') return;
    const waiting = this.#waiting.get(report.number);
    this.#waiting.delete(report.number);
    if (report.error === undefined) waiting?.resolve(report.value);
    else waiting?.reject(errorOf(report.error));
  }

  #order(order: Order): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#waiting.set(order.number, { resolve, reject });
      this.#child.send(order, (error) => {
        if (error !== null) reject(error);
      });
    });
  }

  #failWaiting(): void {
    for (const { reject } of this.#waiting.values()) reject(new Error('The child process has ended.'));
    this.#waiting.clear();
  }

  /** An object with the methods that the store in the child has. */
  #facade(methods: MethodsByPart): AgentStore {
    const part = (name: string): Record<string, unknown> | undefined => {
      const names = methods[name] ?? [];
      if (names.length === 0) return undefined;
      return Object.fromEntries(
        names.map((method) => [
          method,
          (...args: readonly unknown[]) =>
            this.#order({ kind: 'call', number: (this.#orders += 1), part: name, method, args }),
        ]),
      );
    };
    const parts = {
      checkpoints: part('checkpoints'),
      approvals: part('approvals'),
      sessions: part('sessions'),
    };
    const present = Object.entries(parts).filter(([, methodsOfPart]) => methodsOfPart !== undefined);
    return { ...part('store'), ...Object.fromEntries(present) };
  }
}

type MethodsByPart = { readonly [part: string]: readonly string[] };

/** Both: the process is gone, and everything that it had sent was received. */
async function whenEnded(child: ChildProcess): Promise<void> {
  await Promise.all([
    new Promise((resolve) => child.once('exit', resolve)),
    new Promise((resolve) => child.once('disconnect', resolve)),
  ]);
}

/** What a process said at its end. Stack lines go and colours too: only the start and the end of a long text are shown. */
function lastWordsOf(errors: string): string {
  const lines = stripVTControlCharacters(errors).split('\n');
  return lines
    .filter((line) => line.trim() !== '' && !/^\s+at /.test(line))
    .slice(-8)
    .join('\n');
}

function errorOf({ name, message, code, details }: ReportedError): Error {
  if (code?.startsWith('LOUSHO_') === true)
    return new SDKError(code as ErrorCode, details as ErrorDetails[ErrorCode], { message });
  return Object.assign(new Error(message), { name });
}

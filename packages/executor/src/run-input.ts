/** Input that arrives while the run executes: queued behind the step, or steering it. What was stored is never dropped. */
import { textOf, type Message, type QueuedInput, type UserMessage } from '@lousho/contract';
import { inputMessages } from './accept-input.ts';

export interface RunInputDeps {
  /** Takes the messages into the held input at once; resolves when that is stored. */
  hold(messages: readonly Message[]): Promise<void>;
  onQueued(id: string, text: string): void;
  onSteered(id: string, text: string, applied: 'immediate' | 'queued'): void;
}

export class RunInput {
  #deps: RunInputDeps | undefined;
  #isOver = false;
  #isSteered = false;
  #count = 0;
  /** Ids of held input that did not join the transcript yet. */
  #held: string[] = [];
  /** Input that came before the run was open. */
  #early: (() => void)[] = [];
  #dropModelCall: () => boolean = () => false;

  /** Whether calls of this step that have not begun give way to new input. */
  get isSteered(): boolean {
    return this.#isSteered;
  }

  /** From now on input goes into the run's checkpoint; first what came while it opened. */
  open(deps: RunInputDeps): void {
    this.#deps = deps;
    this.#takeEarly();
  }

  /** The run is over: later input is refused. */
  close(): void {
    this.#isOver = true;
    this.#takeEarly();
  }

  /** @throws synchronously LOUSHO_CONFIG_INVALID */
  enqueue(input: string | UserMessage): QueuedInput {
    return this.#accept(
      inputMessages(input),
      () => 'queued',
      (id, text) => this.#deps?.onQueued(id, text),
    );
  }

  /** @throws synchronously LOUSHO_CONFIG_INVALID; the model call under way then goes on */
  steer(input: string | UserMessage): QueuedInput {
    const redirect = (): 'immediate' | 'queued' => {
      this.#isSteered = true;
      return this.#dropModelCall() ? 'immediate' : 'queued';
    };
    return this.#accept(inputMessages(input), redirect, (id, text, applied) =>
      this.#deps?.onSteered(id, text, applied),
    );
  }

  /** While a model call runs: `drop` gives it up if nothing was heard of it yet. The returned function ends that. */
  steersModelCall(drop: () => boolean): () => void {
    this.#dropModelCall = drop;
    return () => {
      this.#dropModelCall = () => false;
    };
  }

  /** The held input joins the transcript: its ids. */
  takeHeld(): readonly string[] {
    this.#isSteered = false;
    return this.#held.splice(0);
  }

  #accept(
    messages: readonly Message[],
    apply: () => 'immediate' | 'queued',
    report: (id: string, text: string, applied: 'immediate' | 'queued') => void,
  ): QueuedInput {
    this.#count += 1;
    const id = `input_${this.#count}`;
    if (this.#isOver) return { id, applied: false, joined: Promise.resolve(false) };
    const applied = apply();
    const joined = new Promise<boolean>((resolve) => {
      const take = (): void => {
        if (this.#deps === undefined || this.#isOver) return resolve(false);
        this.#held.push(id);
        report(id, messages.map(textOf).join(''), applied);
        this.#deps.hold(messages).then(
          () => resolve(true),
          () => resolve(false),
        );
      };
      if (this.#deps === undefined) this.#early.push(take);
      else take();
    });
    return { id, applied, joined };
  }

  #takeEarly(): void {
    for (const take of this.#early.splice(0)) take();
  }
}

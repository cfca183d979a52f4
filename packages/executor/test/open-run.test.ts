import { isSDKError, SessionAwaitingApprovalError, type Checkpoint, type Message } from '@lousho/contract';
import { describe, expect, it } from 'vitest';
import { openRun, type Opening, type RunRequest } from '../src/open-run.ts';
import {
  approvalOf,
  assistant,
  call,
  finished,
  inProgress,
  result,
  system,
  tool,
  user,
  waiting,
  yes,
} from './checkpoints.ts';

const messages = [user('go'), assistant('', call('a'), call('b'))];
const send = (...given: readonly Message[]): RunRequest => ({ type: 'send', messages: given });
const once = (...given: readonly Message[]): RunRequest => ({ type: 'once', messages: given });
const resume: RunRequest = { type: 'resume' };
const recover = (isDue: boolean): RunRequest => ({
  type: 'recover',
  isDue: () => isDue,
  forgivenStarts: 0,
  onProgress: () => undefined,
});
const decide = (id: string): RunRequest => ({ type: 'decide', approvalId: id });

const over = finished({ messages: [user('go'), assistant('done')] });
const cut = inProgress({ messages });
const paused = waiting({ messages, approvals: [approvalOf('a'), approvalOf('b')] });
const halfDecided = waiting({
  messages,
  approvals: [approvalOf('a', { decision: { ...yes, by: 'ann' } }), approvalOf('b')],
});
const audited = {
  ...result('a'),
  approval: { id: approvalOf('a').id, approved: false, decidedAt: 'then', by: 'bob' },
};

type Row = readonly [rule: string, stored: Checkpoint | null, request: RunRequest, opening: Partial<Opening>];
const rows: readonly Row[] = [
  ['a recovery resumes what is still due', cut, recover(true), { type: 'resume', messages: [] }],
  ['a recovery leaves what is not due any more', cut, recover(false), { type: 'nothing' }],
  ['a recovery leaves what waits for a person by now', paused, recover(true), { type: 'nothing' }],
  ['a recovery leaves what is over by now', over, recover(true), { type: 'nothing' }],
  ['a recovery leaves what is gone by now', null, recover(true), { type: 'nothing' }],
  ['input for an unknown id starts a run', null, send(user('go')), { type: 'new' }],
  [
    'input for an unfinished run resumes it',
    cut,
    send(user('and')),
    { type: 'resume', messages: [user('and')] },
  ],
  [
    'a retry for an unfinished run resumes it with nothing new',
    cut,
    send(user('go')),
    { type: 'resume', messages: [] },
  ],
  ['an empty list resumes an unfinished run', cut, send(), { type: 'resume', messages: [] }],
  [
    'input for a finished run continues the conversation',
    over,
    send(user('and')),
    { type: 'continue', messages: [user('and')] },
  ],
  [
    'the same words for a finished run continue it too',
    over,
    send(user('go')),
    { type: 'continue', messages: [user('go')] },
  ],
  ['nothing new for a finished run is answered from the store', over, send(), { type: 'stored' }],
  [
    'its own history for a finished run is answered from the store',
    over,
    send(...over.messages),
    { type: 'stored' },
  ],
  ['a job for an unknown id starts it', null, once(user('go')), { type: 'new' }],
  [
    'a job that was cut goes on, whatever its words are now',
    cut,
    once(user('other')),
    { type: 'resume', messages: [] },
  ],
  ['a job that is over is answered from the store', over, once(user('other')), { type: 'stored' }],
  ['a job that waits for a person is answered from the store', paused, once(user('go')), { type: 'stored' }],
  ['a resume of an unknown id finds nothing', null, resume, { type: 'nothing' }],
  ['a resume of a finished run finds nothing', over, resume, { type: 'nothing' }],
  ['a resume continues what is unfinished', cut, resume, { type: 'resume', messages: [] }],
  [
    'a resume continues what a person stopped',
    inProgress({ finishReason: 'aborted' }),
    resume,
    { type: 'resume' },
  ],
  [
    'a resume continues a run whose last decision is there',
    inProgress({ messages, approvals: [approvalOf('a', { decision: yes })] }),
    resume,
    { type: 'resume' },
  ],
  [
    'a decision opens the run that waits for it',
    paused,
    decide(approvalOf('b').id),
    { type: 'decide', approval: approvalOf('b') },
  ],
  [
    'a decision opens a run that has other decisions',
    halfDecided,
    decide(approvalOf('b').id),
    { type: 'decide' },
  ],
];

describe('how a run opens', () => {
  it.each(rows)('%s', (_rule, stored, request, opening) => {
    expect(openRun('order-7', stored, request)).toMatchObject(opening);
  });
});

describe('what is refused', () => {
  const refused = (stored: Checkpoint | null, request: RunRequest): unknown => {
    const opening = openRun('order-7', stored, request);
    return opening.type === 'refuse' ? opening.error : opening;
  };

  it.each([
    ['an empty list', send()],
    ['a system message alone', send(system('Be kind.'))],
    ['a job without words', once()],
  ])('%s for an unknown id: there is nothing to say', (_what, request) => {
    expect(isSDKError(refused(null, request), 'LOUSHO_INPUT_EMPTY')).toBe(true);
  });
  it.each([
    ['new input', send(user('and'))],
    ['a retry', send(user('go'))],
    ['an empty list', send()],
    ['a resume', resume],
  ])('%s for a run that waits for a person, naming what it waits for', (_what, request) => {
    const error = refused(paused, request);
    expect(error).toBeInstanceOf(SessionAwaitingApprovalError);
    expect(error).toMatchObject({
      sessionId: 'order-7',
      approvalId: approvalOf('a').id,
      approvalIds: [approvalOf('a').id, approvalOf('b').id],
      approvalKind: 'tool',
    });
  });
  it('says of what kind the first open approval is', () => {
    const asked = waiting({ messages, approvals: [approvalOf('a', { kind: 'interrupted' })] });
    expect(refused(asked, resume)).toMatchObject({ approvalKind: 'interrupted' });
  });

  it.each<readonly [string, Checkpoint, unknown]>([
    ['a sibling is still open', halfDecided, { approved: true, by: 'ann' }],
    [
      'its call has not run yet',
      inProgress({ messages, approvals: [approvalOf('a', { decision: yes })] }),
      { approved: true },
    ],
    [
      'its result settled early',
      inProgress({ messages, settledResults: [audited] }),
      { approved: false, by: 'bob', decidedAt: 'then' },
    ],
    [
      'its result is in the transcript',
      inProgress({ messages: [...messages, { role: 'tool', content: [audited] }, tool('b')] }),
      { approved: false, by: 'bob' },
    ],
    [
      'the run went on and finished',
      finished({
        messages: [...messages, { role: 'tool', content: [audited] }, tool('b'), assistant('done')],
      }),
      { approved: false },
    ],
  ])('a second decision, saying who decided, when %s', (_when, stored, details) => {
    const error = refused(stored, decide(approvalOf('a').id));
    expect(isSDKError(error, 'LOUSHO_APPROVAL_DECIDED') && error.details).toMatchObject(details as object);
  });

  it.each<readonly [string, Checkpoint | null]>([
    ['is gone', null],
    ['is another one', finished({ runId: 'run00002' })],
    ['waits for other calls', waiting({ messages, approvals: [approvalOf('b')] })],
  ])('a decision whose run %s: nothing waits for it', (_how, stored) => {
    const error = refused(stored, decide(approvalOf('a').id));
    expect(isSDKError(error, 'LOUSHO_APPROVAL_ORPHANED') && error.details).toMatchObject({
      approvalId: approvalOf('a').id,
    });
  });
});

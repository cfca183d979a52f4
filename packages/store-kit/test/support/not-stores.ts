/** What people hand over for a store, and what the refusal says of it. */
import type { CheckpointStore } from '@lousho/contract';

interface Refusal {
  /** Behind the name of the option. */
  readonly option: string;
  readonly got: unknown;
  readonly want: string;
}

const noStore = 'an AgentStore, for example memoryStore()';
const noPart =
  'an AgentStore with a checkpoints part; a checkpoint store alone goes in as { checkpoints: store }';

export function notStores(
  checkpoints: CheckpointStore,
): readonly (readonly [name: string, given: unknown, refusal: Refusal])[] {
  const empty = {};
  return [
    ['a path', './a.db', { option: '', got: './a.db', want: noStore }],
    ['null', null, { option: '', got: null, want: noStore }],
    ['an object', empty, { option: '', got: empty, want: noPart }],
    ['checkpoints alone', checkpoints, { option: '', got: checkpoints, want: noPart }],
    [
      'a part that is null',
      { checkpoints: null },
      { option: '.checkpoints.save', got: undefined, want: 'a function' },
    ],
    [
      'a part with half of its methods',
      { checkpoints, approvals: { save: async () => undefined, load: 'x' } },
      { option: '.approvals.load', got: 'x', want: 'a function' },
    ],
    [
      'sessions without revisions',
      { sessions: { load: async () => null, save: async () => undefined, delete: async () => undefined } },
      { option: '.sessions.saveIfRevision', got: undefined, want: 'a function' },
    ],
  ];
}

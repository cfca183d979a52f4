/** Random histories of calls, compared with simple models: what no rule about one promise thinks of. */
import { NotApplicable } from '../failure.ts';
import { approvalCommands, sessionCommands } from '../models/record-models.ts';
import { checkpointCommands } from '../models/checkpoint-model.ts';
import { leaseCommands } from '../models/lease-model.ts';
import { runRandomCommands } from '../models/random-commands.ts';
import { ofStrong, ofStrongAtomicLeases, type Rule } from '../rule.ts';

export const modelRules: readonly Rule[] = [
  {
    id: 'model/checkpoints',
    name: 'model/checkpoints',
    rule: 'Whatever the order of saves, deletes, loads, histories and lists over several handles, the store answers as a simple model does.',
    ...ofStrong,
    run: (world) => runRandomCommands((random, seed) => checkpointCommands(world, random, seed)),
  },
  {
    id: 'model/leases',
    name: 'model/leases',
    rule: 'Whatever the order in which owners take, renew, lose and release leases and save under them, the store answers as a simple model does.',
    ...ofStrongAtomicLeases,
    async run(world) {
      if (world.hasOwnClock) throw new NotApplicable('the model needs a clock that can be moved exactly');
      await runRandomCommands((random, seed) => leaseCommands(world, random, seed));
    },
  },
  {
    id: 'model/approvals',
    name: 'model/approvals',
    rule: 'Whatever the order of saves, deletes, loads and lists of approvals over several handles, the store answers as a simple model does.',
    ...ofStrong,
    run: (world) => runRandomCommands((random, seed) => approvalCommands(world, random, seed)),
  },
  {
    id: 'model/sessions',
    name: 'model/sessions',
    rule: 'Whatever the order in which sessions are saved, deleted, loaded and listed over several handles, the store answers as a simple model does.',
    ...ofStrong,
    run: (world) => runRandomCommands((random, seed) => sessionCommands(world, random, seed)),
  },
];

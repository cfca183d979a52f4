/** A rule of the suite: one promise of the contract, the claim it belongs to, and the test of it. */
import type { StoreClaims } from '@lousho/contract';
import type { World } from './world.ts';

export interface ConformanceRule {
  /** For example `L3`: the number of the promise. */
  readonly id: string;
  /** Group and rule, for example `leases/one-winner`. */
  readonly name: string;
  /** The promise, as one sentence. */
  readonly rule: string;
  readonly needs: (claims: StoreClaims) => boolean;
}

/** What a store has to claim so that a rule is asked of it. */
export interface Need {
  /** In words, for the title of a skipped rule. */
  readonly claim: string;
  readonly needs: (claims: StoreClaims) => boolean;
}

export interface Rule extends ConformanceRule, Need {
  /** Throws `Mismatch` when the promise is broken, `NotApplicable` when this store cannot be asked. */
  run(world: World): Promise<void>;
}

/** `lease` of `lease/one-winner`. */
export function groupOf({ name }: ConformanceRule): string {
  return name.slice(0, name.indexOf('/'));
}

export const ofEveryStore: Need = { claim: '', needs: () => true };
export const ofLeases: Need = { claim: 'leases', needs: ({ leases }) => leases !== 'none' };
export const ofAtomicLeases: Need = { claim: 'atomic leases', needs: ({ leases }) => leases === 'atomic' };
export const ofBestEffortLeases: Need = {
  claim: 'best-effort leases',
  needs: ({ leases }) => leases === 'best-effort',
};
/** Memory has one clock and one process: nobody's clock can disagree, and no older release wrote into it. */
export const ofDurableLeases: Need = {
  claim: 'leases that outlive a process',
  needs: ({ leases, durable }) => leases !== 'none' && durable !== 'memory',
};
export const ofDurable: Need = {
  claim: 'durability beyond memory',
  needs: ({ durable }) => durable !== 'memory',
};
export const ofHistory: Need = { claim: 'history', needs: ({ history }) => history };
export const ofList: Need = { claim: 'list', needs: ({ list }) => list };
export const ofEventual: Need = {
  claim: 'eventual consistency',
  needs: ({ consistency }) => consistency === 'eventual',
};
/** Random histories are compared with a model that sees each write at once. */
export const ofStrong: Need = {
  claim: 'strong consistency',
  needs: ({ consistency }) => consistency === 'strong',
};
export const ofStrongAtomicLeases: Need = {
  claim: 'atomic leases and strong consistency',
  needs: ({ leases, consistency }) => leases === 'atomic' && consistency === 'strong',
};

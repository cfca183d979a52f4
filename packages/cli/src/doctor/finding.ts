/** What doctor found. */
export interface Finding {
  /** `note`: nothing to worry about, or for a person to judge. */
  readonly level: 'fine' | 'note' | 'wrong';
  readonly topic: 'node' | 'packages' | 'config' | 'store' | 'runs' | 'approvals' | 'leases';
  readonly message: string;
  /** What to do about it. */
  readonly hint?: string;
}

/** Stores that somebody else might write, over the files of docs/build-a-store.md: a modest one, one with a race, and a boastful one. */

const looseDatabase = `
  // Everything is awaited, and nothing is kept apart: what most of us write first over a driver without transactions.
  export function looseDatabase() {
    const rows = new Map();
    const access = {
      get: async (key) => rows.get(key),
      set: async (key, text) => void rows.set(key, text),
      delete: async (key) => rows.delete(key),
      keys: async (prefix) => [...rows.keys()].filter((key) => key.startsWith(prefix)).sort(),
    };
    return { transaction: (work) => work(access) };
  }
`;
const threeMethods = `
  import { toyDatabase } from './database.mjs';
  import { threeMethods } from './three-methods.mjs';
  export const subject = {
    name: 'three methods',
    claims: { leases: 'none', history: false, list: false, durable: 'process', consistency: 'strong' },
    async createStorage() {
      const database = toyDatabase();
      return { open: async () => threeMethods(database), destroy: async () => undefined };
    },
  };
`;
const racy = `
  import { looseDatabase } from './loose-database.mjs';
  import { claims, rowStore } from './row-store.mjs';
  export const subject = {
    name: 'racy store',
    claims,
    historyLimit: 50,
    async createStorage(clock) {
      const database = looseDatabase();
      return { open: async () => rowStore(database, { clock }), destroy: async () => undefined };
    },
  };
`;
const boastful = `
  import { toyDatabase } from './database.mjs';
  import { threeMethods } from './three-methods.mjs';
  import { claims } from './row-store.mjs';
  export const subject = {
    name: 'boastful store',
    claims,
    async createStorage() {
      const database = toyDatabase();
      return { open: async () => threeMethods(database), destroy: async () => undefined };
    },
  };
`;

const checkBoastful = `
  import { check } from '@lousho/testing/conformance';
  import { subject } from './boastful-subject.mjs';
  const { passed, results } = await check(subject, { only: ['Z1'] });
  console.log(passed, results[0].failure.message);
`;

/** By file name. */
export const theirStores: { readonly [name: string]: string } = {
  'loose-database.mjs': looseDatabase,
  'three-methods-subject.mjs': threeMethods,
  'racy-subject.mjs': racy,
  'boastful-subject.mjs': boastful,
  'check-boastful.mjs': checkBoastful,
};

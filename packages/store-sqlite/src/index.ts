/** Lousho store that keeps runs in one SQLite file. */
export { SqliteStore, type SqliteStoreOptions } from './sqlite-store.ts';

import type { Request } from 'express';
import type { Handler } from '../http/exchange.js';

/** Person who sends a request. */
export interface Person {
  readonly name: string;
  readonly groups: readonly string[];
}

/** Identifies people without a key. */
export interface PersonSource {
  /** Creates the check of every request. It runs before any other part reads the person. */
  guard(): Handler;
  /** Returns the person of a request that the check has accepted; null if it names none. */
  personOf(req: Request): Person | null;
  /** Reports the groups of a person to the primary, which owns the options of all clients. */
  report(person: Person): Promise<void>;
}

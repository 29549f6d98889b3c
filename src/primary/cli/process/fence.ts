import type { ContainmentFactory } from '../terminate/containment.js';

/** Login that a fence lets its own programs read. */
export interface FencedLogin {
  /** Real path of its HOME; null for a login with a token. */
  readonly home: string | null;
}

/** Hides logins from programs that do not need them. */
export interface Fence {
  /** Returns containments for the programs of a login; null is that of the service. */
  around(containments: ContainmentFactory, login: FencedLogin | null): ContainmentFactory;
  /** Returns containments for programs that need no login, such as readers of documents. All logins are hidden. */
  aroundReader(containments: ContainmentFactory): ContainmentFactory;
}

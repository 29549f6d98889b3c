/**
 * Group of people who can read data of a client. `host`: root, the service's user, and the model CLI, which runs as this user. `scraper`:
 * who has the scope `metrics`. `receiver`: the service that the operator has named for it.
 */
type DataReader = 'client' | 'admin' | 'everybody' | 'host' | 'scraper' | 'receiver';

/** Kind of data that the service stores, for people who ask what is kept of them. */
export interface StoredKind {
  /** Name in plural, such as `conversations`. */
  readonly kind: string;
  readonly content: string;
  /**
   * Place of the data while it is kept: that of a store, `memory`, `process` or `output`. `nowhere`: the settings of this
   * service prevent that it is stored.
   */
  readonly place: string;
  /** Time after the moment that `until` names, in milliseconds; null if no time limits it. */
  readonly keptMs: number | null;
  /** End of the sentence *It is kept …*, such as `until the job ends` or `30 days after its last activity`. */
  readonly until: string;
  readonly readers: readonly DataReader[];
  /** Request that reads the data of its client; null if there is none. */
  readonly export: string | null;
  /** Request that deletes it; null if there is none. */
  readonly deletion: string | null;
  /** Variables that change any of this. */
  readonly variables: readonly string[];
}

/** Course in the answers of /courses. */
export interface ShownCourse {
  readonly name: string;
  readonly until: string | null;
  readonly limits: readonly string[];
  readonly members: number;
  readonly tokens: number;
  readonly cost_usd: number;
}

/** Member in the answers of /courses/{course}. */
export interface ShownMember {
  readonly name: string;
  readonly client: string;
  /** Only for those who are no members any more. */
  readonly has_left?: true;
  readonly may_change: boolean;
  readonly limits: readonly string[];
  readonly jobs: number;
  readonly failed: number;
  readonly tokens: number;
  readonly cost_usd: number;
}

/** Member who has just got a key. */
export interface NewMember {
  readonly login: string;
  readonly name: string;
  readonly key: string;
}

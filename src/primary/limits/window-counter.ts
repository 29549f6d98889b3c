/** What is counted of one window, and how long it lasts yet. */
export interface CountedWindow {
  readonly count: number;
  readonly leftMs: number;
}

/** Counts in windows that all hosts share. */
export interface WindowCounter {
  /** Opens the window unless it is open. Rejects soon where it can't be counted. */
  add(name: string, points: number, windowMs: number): Promise<CountedWindow>;
}

/** Table that a feature declares, and that each store implements. The declaration is plain data, because a store may pass it to a thread. */
export interface StoreTable {
  /** Name in stores and in reports, of small letters and `_`. */
  readonly name: string;
  /** Name of one row, in stores and in metrics. No other table has it. */
  readonly rowName: string;
  /** Age since its creation from which an ended row is removed, in milliseconds. */
  readonly keepMs: number;
  /**
   * Rows that clients cause have this value in this field. `max`: limit of all of them, `maxOfHolder`: limit for the
   * clients of one holder.
   */
  readonly byClients: {
    readonly field: string;
    readonly value: string;
    readonly max: number;
    readonly maxOfHolder: number;
  };
  /** Limit of other rows. No row that a client causes takes their places. */
  readonly maxOthers: number;
}

/** Key in the answers of /keys, with what the page shows of it. */
export interface ShownKey {
  readonly name: string;
  readonly source: 'operator' | 'http';
  readonly owner: string | null;
  readonly scopes: readonly string[];
  readonly rate: string | null;
  readonly concurrent: number | null;
  readonly queue: number | null;
  readonly weight: number | null;
  readonly models: readonly string[] | null;
  readonly tokens?: string | null;
  readonly cost?: string | null;
  readonly group: string | null;
  readonly expires: string | null;
}

/** Key whose value has just been made. */
export interface FreshKey extends ShownKey {
  readonly key: string;
}

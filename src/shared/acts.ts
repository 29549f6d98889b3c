/** Acts of administrators, and acts of people on own keys and data. */
export const operatorActs = [
  ...(['key_made', 'key_changed', 'key_removed', 'key_rotated', 'key_lent', 'lent_key_ended'] as const),
  ...(['slots_reserved', 'reservation_cancelled'] as const),
  ...(['client_purged', 'client_purge_ended', 'client_exported'] as const),
  ...(['job_ended', 'health_rechecked', 'store_backed_up', 'service_reloaded'] as const),
] as const;

export interface OperatorAct {
  readonly act: (typeof operatorActs)[number];
  /** Client that acts, or the signal that has caused a reload. */
  readonly by: string;
  /** Key, client, job or file that the act concerns; null if it concerns none. */
  readonly target: string | null;
  readonly request_id: string | null;
  /** Numbers of the things that were removed or exported, by kind. */
  readonly counts?: Readonly<Record<string, number>>;
  /** SHA-256 of an export in hexadecimal digits. */
  readonly sha256?: string;
}

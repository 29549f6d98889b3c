export const phases = ['starting', 'ready', 'draining', 'stopped'] as const;

/** Where the service is in its life. Owned by the primary's supervisor; workers hold the last one they were told. */
export type Phase = (typeof phases)[number];

export const phases = ['starting', 'ready', 'draining', 'stopped'] as const;

/** Phase of the service. The primary's supervisor owns it and sends each change to the workers. */
export type Phase = (typeof phases)[number];

/** Exit codes of the service. Codes from 69 are those of sysexits.h. */
export const serviceExits = {
  clean: 0,
  /** Jobs were cut, or an answer that a client was reading. */
  cut: 1,
  /** The address is in use, or no worker can start. */
  unavailable: 69,
  /** Exception during the start that is a defect of this program. */
  internal: 70,
  /** Invalid configuration. */
  config: 78,
} as const;
export type ServiceExit = (typeof serviceExits)[keyof typeof serviceExits];

/** Exit codes of a worker. */
export const workerExits = {
  clean: 0,
  /** Uncaught exception, which is a defect of this program. */
  broken: 1,
  /** An answer was not sent in time, although its client was reading. */
  cut: 2,
  cannotListen: 69,
} as const;

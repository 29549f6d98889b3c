export const phases = ['starting', 'ready', 'draining', 'stopped'] as const;

/** The phase of the service. The primary's supervisor owns it and sends each change to the workers. */
export type Phase = (typeof phases)[number];

/** How the service ends; from 69 on the numbers are those of sysexits.h. */
export const serviceExits = {
  clean: 0,
  /** Work was cut, or an answer that its client was reading. */
  cut: 1,
  /** The address is in use, or no worker can start. */
  unavailable: 69,
  /** A defect. */
  internal: 70,
  /** The configuration has faults. */
  config: 78,
} as const;
export type ServiceExit = (typeof serviceExits)[keyof typeof serviceExits];

/** The exit codes of a worker. */
export const workerExits = {
  clean: 0,
  /** A defect. */
  broken: 1,
  /** An answer could not be sent in time, though its client was reading. */
  cut: 2,
  cannotListen: 69,
} as const;

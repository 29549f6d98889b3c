import type { Service } from '../../test/support/service/service.js';

/** Discards the service's log as cheaply as possible, because storing it would distort the measurement. */
export function dropLog(service: Service): void {
  service.process.stdout?.removeAllListeners('data').resume();
}

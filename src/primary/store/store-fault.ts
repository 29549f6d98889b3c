/** Why a store can't be opened, as a sentence for the operator. */
export class StoreFault extends Error {
  override readonly name = 'StoreFault';
}

/** Another process has the file open. */
export class HeldFault extends StoreFault {}

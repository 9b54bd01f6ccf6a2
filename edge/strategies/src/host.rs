//! A module in the engine: metered in fuel and memory, and given nothing but the functions of [`crate::interface`].

use std::path::Path;

use walras_types::{AccountId, RejectReason};
use walras_wire::Command;
use wasmtime::{Caller, Config, Engine, Instance, Linker, Memory, Module, ResourceLimiter, Store, Trap, TypedFunc};

use crate::StrategyLimits;
use crate::interface::{self, BUFFER_BYTES, COMMANDS_PER_CALL_MAX, LimitOrder, MODULE_BYTES_MAX, Taken, VERSION};

/// Bytes of the module's own stack.
const STACK_BYTES: usize = 256 << 10;
/// Entries of a module's tables, together.
const TABLE_ENTRIES_MAX: usize = 10_000;

/// Why a module is not taken.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("could not read {path}: {detail}")]
    File {
        /// Its path.
        path: String,
        /// Why not.
        detail: String,
    },
    /// It is no module, or uses what modules may not.
    #[error("it is no module of WebAssembly that can run here: {0}")]
    Module(String),
    /// It imports what the host does not have.
    #[error("an import is not known: {0}. A strategy may import the functions of docs/strategies.md, and nothing else")]
    Import(String),
    /// It lacks something that it must export, or exports it with another type.
    #[error("{0}: docs/strategies.md lists what a module exports")]
    Export(String),
    /// It is written for another version of the interface.
    #[error("it is written for version {0} of the interface, and this program has version {VERSION}: build it again")]
    Version(i32),
    /// It was stopped before the first message.
    #[error("it was stopped when it began: {0}")]
    Stopped(#[from] Stopped),
}

/// Why a strategy was stopped. It is called no more.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Stopped {
    /// A call used more fuel than it may.
    #[error("out of fuel: a call used more than {fuel} (fuel_per_call)")]
    Fuel {
        /// As much as it had.
        fuel: u64,
    },
    /// It asked for more memory than it may have.
    #[error("out of memory: it asked for more than {bytes} bytes (memory_kib)")]
    Memory {
        /// As much as it may have.
        bytes: usize,
    },
    /// It asked for larger tables than it may have.
    #[error("out of tables: it asked for more than {TABLE_ENTRIES_MAX} entries")]
    Tables,
    /// Its instructions ended in a trap.
    #[error("trap: {0}")]
    Trap(String),
}

/// What a module's calls reach.
struct State {
    account: AccountId,
    /// Commands that this call may still make.
    room: u32,
    commands: Vec<Command>,
    memory_bytes_max: usize,
    stopped: Option<Stopped>,
}

impl State {
    fn take(&mut self, command: Option<Command>) -> i32 {
        let taken = match command {
            None => Taken::BadArgument,
            Some(_) if self.room == 0 => Taken::NoRoom,
            Some(command) => {
                self.room -= 1;
                self.commands.push(command);
                Taken::Yes
            }
        };
        taken as i32
    }
}

impl ResourceLimiter for State {
    fn memory_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired <= self.memory_bytes_max {
            return Ok(true);
        }
        let stopped = Stopped::Memory { bytes: self.memory_bytes_max };
        self.stopped = Some(stopped.clone());
        Err(wasmtime::Error::new(stopped))
    }

    fn table_growing(&mut self, _: usize, desired: usize, _: Option<usize>) -> wasmtime::Result<bool> {
        if desired <= TABLE_ENTRIES_MAX {
            return Ok(true);
        }
        self.stopped = Some(Stopped::Tables);
        Err(wasmtime::Error::new(Stopped::Tables))
    }

    fn instances(&self) -> usize {
        1
    }

    fn memories(&self) -> usize {
        1
    }

    fn tables(&self) -> usize {
        4
    }
}

/// Compiles and starts modules.
pub struct Host {
    engine: Engine,
    linker: Linker<State>,
}

impl std::fmt::Debug for Host {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Host").finish_non_exhaustive()
    }
}

impl Host {
    /// One for any number of modules.
    ///
    /// # Errors
    /// This machine cannot run modules.
    pub fn new() -> Result<Self, LoadError> {
        let fault = |error: wasmtime::Error| LoadError::Module(format!("{error:#}"));
        let mut config = Config::new();
        // The same module computes the same on every machine, but for what it may not use.
        config.consume_fuel(true).max_wasm_stack(STACK_BYTES).cranelift_nan_canonicalization(true);
        config.wasm_relaxed_simd(false).wasm_memory64(false).wasm_multi_memory(false).wasm_tail_call(false);
        let engine = Engine::new(&config).map_err(fault)?;
        let mut linker = Linker::new(&engine);
        let order = |mut caller: Caller<'_, State>, client_order_id, instrument, side, price, size, time_in_force| {
            let order = LimitOrder { client_order_id, instrument, side, price, size, time_in_force };
            let state = caller.data_mut();
            let command = order.command(state.account);
            state.take(command)
        };
        linker.func_wrap(interface::IMPORTS, "limit_order", order).map_err(fault)?;
        let cancel = |mut caller: Caller<'_, State>, client_order_id, instrument| {
            let state = caller.data_mut();
            let command = interface::cancel(state.account, client_order_id, instrument);
            state.take(Some(command))
        };
        linker.func_wrap(interface::IMPORTS, "cancel", cancel).map_err(fault)?;
        let cancel_all = |mut caller: Caller<'_, State>| {
            let state = caller.data_mut();
            let command = interface::cancel_all(state.account);
            state.take(Some(command))
        };
        linker.func_wrap(interface::IMPORTS, "cancel_all", cancel_all).map_err(fault)?;
        Ok(Self { engine, linker })
    }

    /// Reads a module's file, binary or text, and starts it.
    ///
    /// # Errors
    /// It cannot run here.
    pub fn load_file(&self, path: &Path, limits: StrategyLimits, account: AccountId) -> Result<Strategy, LoadError> {
        let fault = |detail: String| LoadError::File { path: path.display().to_string(), detail };
        let len = std::fs::metadata(path).map_err(|e| fault(e.to_string()))?.len();
        if len > MODULE_BYTES_MAX {
            return Err(fault(format!("it has {len} bytes, and a module at most {MODULE_BYTES_MAX}")));
        }
        let bytes = std::fs::read(path).map_err(|e| fault(e.to_string()))?;
        self.load(&bytes, limits, account)
    }

    /// Starts a module, whose bytes are binary or text.
    ///
    /// # Errors
    /// It cannot run here.
    pub fn load(&self, bytes: &[u8], limits: StrategyLimits, account: AccountId) -> Result<Strategy, LoadError> {
        let module = Module::new(&self.engine, bytes).map_err(|error| LoadError::Module(format!("{error:#}")))?;
        let before = self.linker.instantiate_pre(&module).map_err(|error| LoadError::Import(format!("{error:#}")))?;
        let StrategyLimits { fuel_per_call, memory_bytes } = limits;
        let state = State { account, room: 0, commands: Vec::new(), memory_bytes_max: memory_bytes, stopped: None };
        let mut store = Store::new(&self.engine, state);
        store.limiter(|state| state);
        let refuel = |store: &mut Store<State>| store.set_fuel(fuel_per_call).map_err(|e| LoadError::Module(e.to_string()));
        refuel(&mut store)?;
        let instance = before.instantiate(&mut store).map_err(|error| stopped(&mut store, &error, fuel_per_call))?;
        let abi: TypedFunc<(), i32> = exported(&mut store, &instance, "walras_abi")?;
        let buffer: TypedFunc<(), i32> = exported(&mut store, &instance, "walras_buffer")?;
        let on_market_data = exported(&mut store, &instance, "walras_market_data")?;
        let on_answer = optional(&mut store, &instance, "walras_answer")?;
        let on_report = optional(&mut store, &instance, "walras_report")?;
        let memory = instance.get_memory(&mut store, "memory").ok_or_else(|| LoadError::Export("it exports no `memory`".into()))?;
        refuel(&mut store)?;
        let version = abi.call(&mut store, ()).map_err(|error| stopped(&mut store, &error, fuel_per_call))?;
        if version != VERSION {
            return Err(LoadError::Version(version));
        }
        refuel(&mut store)?;
        let buffer = buffer.call(&mut store, ()).map_err(|error| stopped(&mut store, &error, fuel_per_call))?;
        let start = buffer.cast_unsigned() as usize;
        if start.checked_add(BUFFER_BYTES).is_none_or(|end| end > memory.data_size(&store)) {
            let why = format!("`walras_buffer` gives {start}, where its memory has no room for {BUFFER_BYTES} bytes");
            return Err(LoadError::Export(why));
        }
        Ok(Strategy { store, memory, buffer: start, on_market_data, on_answer, on_report, fuel_per_call, is_stopped: false })
    }
}

fn exported<P: wasmtime::WasmParams, R: wasmtime::WasmResults>(
    store: &mut Store<State>,
    instance: &Instance,
    name: &str,
) -> Result<TypedFunc<P, R>, LoadError> {
    instance.get_typed_func(store, name).map_err(|error| LoadError::Export(format!("`{name}`: {error:#}")))
}

fn optional<P: wasmtime::WasmParams>(
    store: &mut Store<State>,
    instance: &Instance,
    name: &str,
) -> Result<Option<TypedFunc<P, ()>>, LoadError> {
    let is_there = instance.get_export(&mut *store, name).is_some();
    is_there.then(|| exported(store, instance, name)).transpose()
}

/// Why a call ended.
fn stopped(store: &mut Store<State>, error: &wasmtime::Error, fuel: u64) -> Stopped {
    if let Some(stopped) = store.data_mut().stopped.take() {
        return stopped;
    }
    match error.downcast_ref::<Trap>() {
        Some(Trap::OutOfFuel) => Stopped::Fuel { fuel },
        Some(trap) => Stopped::Trap(trap.to_string()),
        None => Stopped::Trap(format!("{error:#}")),
    }
}

/// A module that runs.
pub struct Strategy {
    store: Store<State>,
    memory: Memory,
    /// Where messages are written.
    buffer: usize,
    on_market_data: TypedFunc<(i32, i64, i32), ()>,
    on_answer: Option<TypedFunc<(i64, i32), ()>>,
    on_report: Option<TypedFunc<i32, ()>>,
    fuel_per_call: u64,
    is_stopped: bool,
}

impl std::fmt::Debug for Strategy {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Strategy").field("is_stopped", &self.is_stopped).finish_non_exhaustive()
    }
}

impl Strategy {
    /// Calls it with a message of a channel. `room` is how many commands order entry takes now; [`Self::commands`] then has them.
    ///
    /// # Errors
    /// It is stopped, and is not called again.
    ///
    /// # Panics
    /// It was stopped before.
    pub fn market_data(&mut self, channel: u32, number: u64, message: &[u8], room: u32) -> Result<(), Stopped> {
        let len = self.write(message);
        self.prepare(room);
        let result = self.on_market_data.call(&mut self.store, (channel.cast_signed(), number.cast_signed(), len));
        self.finish(result)
    }

    /// Calls it with what came of a command.
    ///
    /// # Errors
    /// As [`Self::market_data`].
    ///
    /// # Panics
    /// It was stopped before.
    pub fn answer(&mut self, client_order_id: i64, rejected: Option<RejectReason>, room: u32) -> Result<(), Stopped> {
        self.prepare(room);
        let Some(on_answer) = &self.on_answer else { return Ok(()) };
        let result = on_answer.call(&mut self.store, (client_order_id, rejected.map_or(0, |reason| i32::from(reason.number()))));
        self.finish(result)
    }

    /// Calls it with an execution report, as `docs/order-entry.md` writes them.
    ///
    /// # Errors
    /// As [`Self::market_data`].
    ///
    /// # Panics
    /// It was stopped before.
    pub fn report(&mut self, report: &[u8], room: u32) -> Result<(), Stopped> {
        let len = self.write(report);
        self.prepare(room);
        let Some(on_report) = &self.on_report else { return Ok(()) };
        let result = on_report.call(&mut self.store, len);
        self.finish(result)
    }

    /// Takes the commands of the last call out, in order.
    pub fn commands(&mut self) -> impl Iterator<Item = Command> + '_ {
        self.store.data_mut().commands.drain(..)
    }

    /// Fuel that the last call left.
    #[must_use]
    pub fn fuel_left(&self) -> u64 {
        self.store.get_fuel().unwrap_or(0)
    }

    /// Bytes of its memory now.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.memory.data_size(&self.store)
    }

    /// Writes bytes into its buffer, whose place was checked: memory never shrinks.
    fn write(&mut self, bytes: &[u8]) -> i32 {
        let len = bytes.len().min(BUFFER_BYTES);
        self.memory.data_mut(&mut self.store)[self.buffer..self.buffer + len].copy_from_slice(&bytes[..len]);
        i32::try_from(len).unwrap_or(0)
    }

    fn prepare(&mut self, room: u32) {
        assert!(!self.is_stopped, "a strategy that was stopped is called no more");
        self.store.set_fuel(self.fuel_per_call).expect("the engine meters fuel");
        let state = self.store.data_mut();
        state.commands.clear();
        state.room = room.min(COMMANDS_PER_CALL_MAX);
    }

    fn finish(&mut self, result: wasmtime::Result<()>) -> Result<(), Stopped> {
        result.map_err(|error| {
            self.is_stopped = true;
            // What it had asked for is not sent: whether it had come to its end is not known.
            self.store.data_mut().commands.clear();
            stopped(&mut self.store, &error, self.fuel_per_call)
        })
    }
}

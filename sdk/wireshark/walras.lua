-- Wireshark dissector of the market-data feed of Walras (docs/market-data-feed.md).
--
-- Install: copy it into the folder of personal Lua plugins (Help, About Wireshark, Folders), or
--   tshark -X lua_script:walras.lua -r capture.pcap
-- Packets are found by their form on any UDP port. Seals are not checked: nobody but the tree has its key.

local walras = Proto("walras", "Walras market data")

local HEADER_BYTES = 44
local SEAL_BYTES = 16
local HEAD_BYTES = 19
local VERSION = 1

local packet_kinds = { [0] = "data", [1] = "heartbeat", [2] = "end of the channel", [3] = "data that was asked for again" }
local views = { [0] = "the tree's machines", [1] = "orders", [2] = "levels", [3] = "top", [4] = "batches" }

-- What travels in channel 0: requests and their answers, and what machines of the tree say to each other. A test compares it, too.
-- controls
local controls = {
  [1] = "Request",
  [2] = "GoneBefore",
  [3] = "Look",
  [4] = "Figures",
  [16] = "Ping",
  [17] = "Pong",
  [18] = "View",
  [19] = "Taken",
  [20] = "Silent",
  [21] = "Late",
  [22] = "Mute",
}
-- end of the controls

-- What follows is written by a program from the schema in protocol/feed/src/message.rs; a test compares it.
-- schema
local messages = {
  [1] = { name = "InstrumentDefined", fields = {
    { "instrument", "uint32", 4 },
    { "symbol", "stringz", 16 },
    { "base", "uint32", 4 },
    { "quote", "uint32", 4 },
    { "lot_units", "uint64", 8 },
    { "tick_value_units", "uint64", 8 },
    { "allocation", "uint8", 1, { [0] = "price-time", [1] = "pro rata", [2] = "top order, then pro rata", [3] = "split" } },
    { "allocation_min_lots", "uint64", 8 },
    { "allocation_top_lots_max", "uint64", 8 },
    { "allocation_fifo_percent", "uint8", 1 },
    { "maker_ppm", "int32", 4 },
    { "taker_ppm", "int32", 4 },
    { "collar_ppm", "uint32", 4 },
    { "band_ppm", "uint32", 4 },
    { "reference_price", "int64", 8 },
  } },
  [2] = { name = "PhaseChanged", fields = {
    { "phase", "uint8", 1, { [0] = "closed", [1] = "pre-open", [2] = "opening auction", [3] = "continuous", [4] = "halt", [5] = "closing auction" } },
    { "cause", "uint8", 1, { [0] = "the operator", [1] = "the price band" } },
  } },
  [3] = { name = "Traded", fields = {
    { "trade_id", "uint64", 8 },
    { "price", "int64", 8 },
    { "size", "uint64", 8 },
    { "taker_side", "uint8", 1, { [0] = "buy", [1] = "sell", [2] = "nobody: an auction" } },
  } },
  [4] = { name = "AuctionIndicated", fields = {
    { "price_present", "uint8", 1, { [0] = "absent: the value is 0", [1] = "present" } },
    { "price", "int64", 8 },
    { "volume", "uint64", 8 },
    { "imbalance_lots", "int64", 8 },
  } },
  [5] = { name = "AuctionUncrossed", fields = {
    { "price_present", "uint8", 1, { [0] = "absent: the value is 0", [1] = "present" } },
    { "price", "int64", 8 },
    { "volume", "uint64", 8 },
    { "imbalance_lots", "int64", 8 },
  } },
  [10] = { name = "OrderAdded", fields = {
    { "order_id", "uint64", 8 },
    { "side", "uint8", 1, { [0] = "buy", [1] = "sell" } },
    { "price", "int64", 8 },
    { "shown", "uint64", 8 },
  } },
  [11] = { name = "OrderExecuted", fields = {
    { "order_id", "uint64", 8 },
    { "trade_id", "uint64", 8 },
    { "shown", "uint64", 8 },
  } },
  [12] = { name = "OrderReduced", fields = {
    { "order_id", "uint64", 8 },
    { "shown", "uint64", 8 },
  } },
  [13] = { name = "OrderCancelled", fields = {
    { "order_id", "uint64", 8 },
  } },
  [14] = { name = "OrderReplaced", fields = {
    { "order_id", "uint64", 8 },
    { "price", "int64", 8 },
    { "shown", "uint64", 8 },
  } },
  [20] = { name = "LevelChanged", fields = {
    { "side", "uint8", 1, { [0] = "buy", [1] = "sell" } },
    { "price", "int64", 8 },
    { "shown", "uint64", 8 },
    { "order_count", "uint32", 4 },
  } },
  [21] = { name = "TopChanged", fields = {
    { "bid_present", "uint8", 1, { [0] = "absent: the value is 0", [1] = "present" } },
    { "bid", "int64", 8 },
    { "bid_shown", "uint64", 8 },
    { "bid_order_count", "uint32", 4 },
    { "ask_present", "uint8", 1, { [0] = "absent: the value is 0", [1] = "present" } },
    { "ask", "int64", 8 },
    { "ask_shown", "uint64", 8 },
    { "ask_order_count", "uint32", 4 },
  } },
  [30] = { name = "BatchMarketDefined", fields = {
    { "market", "uint16", 2 },
    { "symbol", "stringz", 16 },
    { "interval_ns", "uint64", 8 },
    { "transactions_max", "uint32", 4 },
  } },
  [31] = { name = "BatchAssetAdded", fields = {
    { "place", "uint16", 2 },
    { "asset", "uint32", 4 },
  } },
  [32] = { name = "BatchPhaseChanged", fields = {
    { "phase", "uint8", 1, { [0] = "closed", [1] = "open" } },
  } },
  [33] = { name = "BatchIntervalChanged", fields = {
    { "interval_ns", "uint64", 8 },
  } },
  [34] = { name = "BatchClosed", fields = {
    { "block", "uint64", 8 },
    { "kept", "uint32", 4 },
    { "dropped", "uint32", 4 },
  } },
  [35] = { name = "AssetCleared", fields = {
    { "block", "uint64", 8 },
    { "asset", "uint32", 4 },
    { "price_present", "uint8", 1, { [0] = "absent: the value is 0", [1] = "present" } },
    { "price", "double", 8 },
    { "sold", "uint64", 8 },
  } },
  [36] = { name = "BatchCleared", fields = {
    { "block", "uint64", 8 },
    { "transactions", "uint32", 4 },
    { "pairs", "uint32", 4 },
    { "offers_traded", "uint64", 8 },
    { "gap_ppb", "uint32", 4 },
    { "unserved_ppb", "uint32", 4 },
    { "set_aside", "uint16", 2 },
    { "state_root", "bytes", 32 },
  } },
  [40] = { name = "SnapshotBegan", fields = {
    { "channel", "uint32", 4 },
    { "next", "uint64", 8 },
    { "messages", "uint64", 8 },
  } },
  [41] = { name = "SnapshotEnded", fields = {
    { "channel", "uint32", 4 },
    { "next", "uint64", 8 },
  } },
}
-- end of the schema

local constructors = {
  uint8 = ProtoField.uint8, uint16 = ProtoField.uint16, uint32 = ProtoField.uint32, uint64 = ProtoField.uint64,
  int32 = ProtoField.int32, int64 = ProtoField.int64, double = ProtoField.double,
}

local fields = {
  version = ProtoField.uint8("walras.version", "Version"),
  kind = ProtoField.uint8("walras.kind", "Kind", base.DEC, packet_kinds),
  count = ProtoField.uint16("walras.count", "Messages"),
  channel = ProtoField.uint32("walras.channel", "Channel", base.HEX),
  tree = ProtoField.uint16("walras.tree", "Tree"),
  view = ProtoField.uint16("walras.view", "View of the tree"),
  packet = ProtoField.uint64("walras.packet", "Packet"),
  first = ProtoField.uint64("walras.first", "First message"),
  sent = ProtoField.uint64("walras.sent_ns", "Sent (ns since the epoch)"),
  release = ProtoField.uint64("walras.release_ns", "May be released (ns since the epoch)"),
  seal = ProtoField.bytes("walras.seal", "Seal"),
  message_version = ProtoField.uint8("walras.message.version", "Version"),
  message_kind = ProtoField.uint8("walras.message.kind", "Kind"),
  message_last = ProtoField.bool("walras.message.last", "Last of its log entry", 8, nil, 0x01),
  log_index = ProtoField.uint64("walras.message.log_index", "Log entry"),
  time = ProtoField.uint64("walras.message.time_ns", "Time of the entry (ns since the epoch)"),
  control_kind = ProtoField.uint8("walras.control.kind", "Kind"),
  control_channel = ProtoField.uint32("walras.control.channel", "Of channel", base.HEX),
  control_number = ProtoField.uint64("walras.control.number", "From message"),
  control_count = ProtoField.uint16("walras.control.count", "How many"),
}

local all = {}
for _, field in pairs(fields) do all[#all + 1] = field end
for _, message in pairs(messages) do
  message.bytes = 0
  local abbreviation = "walras." .. message.name:gsub("(%l)(%u)", "%1_%2"):lower() .. "."
  for _, field in ipairs(message.fields) do
    local name, kind, bytes, values = field[1], field[2], field[3], field[4]
    if kind == "stringz" then
      field.proto = ProtoField.stringz(abbreviation .. name, name)
    elseif kind == "bytes" then
      field.proto = ProtoField.bytes(abbreviation .. name, name)
    elseif kind == "double" then
      field.proto = ProtoField.double(abbreviation .. name, name)
    elseif values then
      field.proto = constructors[kind](abbreviation .. name, name, base.DEC, values)
    else
      field.proto = constructors[kind](abbreviation .. name, name)
    end
    message.bytes = message.bytes + bytes
    all[#all + 1] = field.proto
  end
end
walras.fields = all

local malformed = ProtoExpert.new("walras.malformed", "Malformed message", expert.group.MALFORMED, expert.severity.ERROR)
walras.experts = { malformed }

local function dissect_message(buffer, at, length, number, tree)
  local range = buffer(at, length)
  if length < HEAD_BYTES then
    tree:add(walras, range, "Message " .. number):add_proto_expert_info(malformed, "shorter than a head")
    return "?"
  end
  local kind = buffer(at + 1, 1):uint()
  local message = messages[kind]
  local name = message and message.name or ("kind " .. kind)
  local branch = tree:add(walras, range, "Message " .. number .. ": " .. name)
  branch:add_le(fields.message_version, buffer(at, 1))
  branch:add_le(fields.message_kind, buffer(at + 1, 1)):append_text(" (" .. name .. ")")
  branch:add_le(fields.message_last, buffer(at + 2, 1))
  branch:add_le(fields.log_index, buffer(at + 3, 8))
  branch:add_le(fields.time, buffer(at + 11, 8))
  if not message or length ~= HEAD_BYTES + message.bytes then
    branch:add_proto_expert_info(malformed, "an unknown kind or length")
    return name
  end
  local offset = at + HEAD_BYTES
  for _, field in ipairs(message.fields) do
    branch:add_le(field.proto, buffer(offset, field[3]))
    offset = offset + field[3]
  end
  return name
end

-- A message of channel 0.
local function dissect_control(buffer, at, length, tree)
  local kind = length > 0 and buffer(at, 1):uint() or nil
  local name = kind and controls[kind] or "unknown"
  local branch = tree:add(walras, length > 0 and buffer(at, length) or buffer(at - 2, 2), name)
  if kind then branch:add_le(fields.control_kind, buffer(at, 1)):append_text(" (" .. name .. ")") end
  local is_request, is_gone = kind == 1 and length == 15, kind == 2 and length == 13
  if is_request or is_gone then
    branch:add_le(fields.control_channel, buffer(at + 1, 4))
    branch:add_le(fields.control_number, buffer(at + 5, 8))
    if is_request then branch:add_le(fields.control_count, buffer(at + 13, 2)) end
  elseif not kind or not controls[kind] or kind <= 2 then
    branch:add_proto_expert_info(malformed, "an unknown kind or length")
  end
  return name
end

-- Whether the bytes have the form of a packet.
local function is_packet(buffer)
  if buffer:len() < HEADER_BYTES + SEAL_BYTES or buffer(0, 1):uint() ~= VERSION then return false end
  if not packet_kinds[buffer(1, 1):uint()] or not views[buffer(7, 1):uint()] then return false end
  -- Of the channels without a view there is one, whose packets no relay forwards.
  local is_numbered = buffer(12, 4):le_uint() ~= 0 or buffer(16, 4):le_uint() ~= 0
  if buffer(7, 1):uint() == 0 and (buffer(4, 4):le_uint() ~= 0 or is_numbered) then return false end
  local at = HEADER_BYTES
  for _ = 1, buffer(2, 2):le_uint() do
    if at + 2 > buffer:len() - SEAL_BYTES then return false end
    at = at + 2 + buffer(at, 2):le_uint()
  end
  return at == buffer:len() - SEAL_BYTES
end

function walras.dissector(buffer, info, root)
  if not is_packet(buffer) then return 0 end
  info.cols.protocol = "Walras"
  local tree = root:add(walras, buffer())
  tree:add_le(fields.version, buffer(0, 1))
  tree:add_le(fields.kind, buffer(1, 1))
  tree:add_le(fields.count, buffer(2, 2))
  tree:add_le(fields.channel, buffer(4, 4)):append_text(" (" .. views[buffer(7, 1):uint()] .. ")")
  tree:add_le(fields.tree, buffer(8, 2))
  tree:add_le(fields.view, buffer(10, 2))
  tree:add_le(fields.packet, buffer(12, 8))
  tree:add_le(fields.first, buffer(20, 8))
  tree:add_le(fields.sent, buffer(28, 8))
  tree:add_le(fields.release, buffer(36, 8))
  local at, number, names = HEADER_BYTES, buffer(20, 8):le_uint64(), {}
  for place = 1, buffer(2, 2):le_uint() do
    local length = buffer(at, 2):le_uint()
    if buffer(4, 4):le_uint() == 0 then
      names[place] = dissect_control(buffer, at + 2, length, tree)
    else
      names[place] = dissect_message(buffer, at + 2, length, tostring(number + (place - 1)), tree)
    end
    at = at + 2 + length
  end
  tree:add(fields.seal, buffer(at, SEAL_BYTES))
  local kind = packet_kinds[buffer(1, 1):uint()]
  info.cols.info = kind .. " of " .. views[buffer(7, 1):uint()] .. " from " .. tostring(number) .. ": " .. table.concat(names, ", ")
  return buffer:len()
end

walras:register_heuristic("udp", function(buffer, info, root)
  if not is_packet(buffer) then return false end
  -- Later packets of the same addresses are not left to the guesses of other protocols.
  info.conversation = walras
  walras.dissector(buffer, info, root)
  return true
end)

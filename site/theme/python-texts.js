// The rest of what translated Python runs on: functions that take arguments by name,
// classes with fields, numbers as text, and the few modules that the estimates import.
"use strict";

(($) => {
  const { Dict, PySet, raw, ours, same, asFraction } = $;

  // --- functions and classes ---

  const bind = (names, args, named) => {
    const given = [...args];
    for (const [name, value] of named) {
      const at = names.indexOf(name);
      if (at < 0) throw new $.TypeError(`unexpected argument '${name}'`);
      given[at] = value;
    }
    return given;
  };
  $.fn = (make, names, types) => Object.assign(make, { $p: names.split(" "), $types: types });
  // A function whose last parameters take what is left: at a place, or by name.
  $.gather = (make, text, at, byName) => {
    const names = text.split(" ");
    const bare = (args, named) => {
      const given = at < 0 ? [...args] : [...args.slice(0, at), args.slice(at)];
      if (at > args.length) given.length = at;
      if (at >= 0) given[at] = args.slice(at);
      const left = new Dict();
      for (const [name, value] of named) {
        const place = names.indexOf(name);
        if (place >= 0 && !(byName && place === names.length - 1)) given[place] = value;
        else left.put(name, value);
      }
      if (byName) given[names.length - 1] = left;
      return make(...given);
    };
    return raw((...args) => bare(args, []), bare);
  };
  $.kw = (call, args, named) => {
    if (call.$raw) return call.$raw(args, named);
    if (call.__call__) return $.kwm(call, "__call__", args, named);
    return call(...(named.length ? bind(call.$p, args, named) : args));
  };
  $.kwm = (of, name, args, named) => {
    if (of[`$${name}`]) return of[`$${name}`](args, named);
    if (of[name].$raw || of[name].$p) return $.kw(of[name], args, named);
    const names = (typeof of === "function" ? of : of.constructor)[`$p_${name}`];
    return of[name](...bind(names.split(" "), args, named));
  };
  $.make = (kind, args, named) => {
    if (kind.prototype && kind.prototype.__init__) {
      const made = Object.create(kind.prototype);
      $.kwm(made, "__init__", args, named);
      return made;
    }
    return new kind(...(named.length ? bind(kind.$f, args, named) : args));
  };
  $.fields_of = (kind, types, usual) => {
    kind.$t = types;
    kind.$f = kind._fields = Object.keys(types);
    kind._field_defaults = new Dict(usual);
  };
  $.NamedTuple = class {
    *[Symbol.iterator]() { for (const each of this.constructor.$f) yield this[each]; }
    __getitem__(index) { return $.at([...this], index); }
    _asdict() { return $.asdict(this); }
    get _fields() { return this.constructor.$f; }
    static _make(values) { return new this(...values); }
  };
  $.fields = (of) => {
    const kind = typeof of === "function" ? of : of.constructor;
    return kind.$f.map((name) => ({ name, type: kind.$t[name] }));
  };
  $.asdict = (one) => new Dict(one.constructor.$f.map((each) => [each, one[each]]));
  $.replace = raw((one) => one, ([one], named) => {
    const changed = new Map(named);
    return new one.constructor(...one.constructor.$f.map((each) => (changed.has(each) ? changed.get(each) : one[each])));
  });
  $.bound = (of, name) => (typeof of[name] === "function" ? of[name].bind(of) : of[name]);
  $.getattr = (of, name, other) => {
    const found = of[name];
    if (found === void 0 && other === void 0) throw new $.KeyError(name);
    return found === void 0 ? other : found;
  };
  const MOST = 20000;
  const remember = (make) => {
    const known = new Map();
    const bare = (args, named) => {
      const given = named.length ? bind(make.$p, args, named) : args;
      const key = Array.from(given, $.part).join("\u0002");
      if (!known.has(key)) {
        if (known.size > MOST) known.clear();
        known.set(key, make(...given));
      }
      return known.get(key);
    };
    return raw((...args) => bare(args, []), bare);
  };
  $.cached = raw(remember, () => remember);
  $.wraps = () => same;
  $.same = same;
  $.partial = raw((make, ...first) => $.partial.$raw([make, ...first], []), ([make, ...first], fixed) => {
    const bare = (args, named) => $.kw(make, [...first, ...args], [...fixed, ...named]);
    return raw((...args) => bare(args, []), bare);
  });
  $.signature = (make) => ({ parameters: new Dict(make.$p.map((name, at) => [name, { annotation: make.$types[at] }])) });
  $.get_args = same;
  $.hash = $.id = (x) => x;
  $.callable = (x) => typeof x === "function" || !!x.__call__;

  // --- types ---

  $.int = (x) => (typeof x === "string" ? BigInt(x.trim()) : typeof x === "number" ? BigInt(Math.trunc(x)) : ours(x) ? (x.__index__ ? x.__index__() : x.numerator / x.denominator) : BigInt(x));
  $.float = (x) => (ours(x) ? x.__float__() : Number(typeof x === "string" ? x.trim() : x));
  $.bool = $.b;
  $.type = (x) => ({ bigint: $.int, number: $.float, string: $.str, boolean: $.bool })[typeof x] ?? (x === null ? null : Array.isArray(x) ? $.list : x.constructor);
  const tests = new Map([
    [$.int, (x) => typeof x === "bigint" || typeof x === "boolean"],
    [$.float, (x) => typeof x === "number"],
    [$.bool, (x) => typeof x === "boolean"],
    [$.list, Array.isArray],
    [$.Fraction, (x) => x instanceof $.Fraction_],
    [$.dict, (x) => x instanceof Dict],
    [$.set, (x) => x instanceof PySet],
  ]);
  const is = (x, kind) => {
    const test = tests.get(kind);
    return test ? test(x) : x instanceof kind;
  };
  $.isinstance = (x, kinds) => (Array.isArray(kinds) ? kinds.some((kind) => is(x, kind)) : is(x, kinds));

  // --- numbers as text, each rounded once and to the even one of two as near ---

  const halfEven = (top, bottom) => {
    const [whole, rest] = [top / bottom, 2n * (top % bottom)];
    return rest > bottom || (rest === bottom && whole % 2n) ? whole + 1n : whole;
  };
  const digits = (x, places) => { // |x| times 10^places, as a whole number
    const [top, bottom] = $.as_ratio(Math.abs(x));
    return places < 0 ? halfEven(top, bottom * 10n ** BigInt(-places)) : halfEven(top * 10n ** BigInt(places), bottom);
  };
  const sign = (x) => (x < 0 || Object.is(x, -0) ? "-" : "");
  const fixed = (x, places) => {
    if (!Number.isFinite(x)) return unfinite(x);
    const text = digits(x, places).toString().padStart(places + 1, "0");
    return sign(x) + (places ? `${text.slice(0, -places)}.${text.slice(-places)}` : text);
  };
  const unfinite = (x) => (Number.isNaN(x) ? "nan" : x < 0 ? "-inf" : "inf");
  const power = (at) => `e${at < 0 ? "-" : "+"}${String(Math.abs(at)).padStart(2, "0")}`;
  const scientific = (x, places) => {
    if (!x) return [sign(x) + fixed(0, places), 0];
    let at = Number(x.toExponential().split("e")[1]);
    let text = digits(x, places - at).toString();
    if (text.length > places + 1) text = digits(x, places - (at += 1)).toString();
    return [sign(x) + text[0] + (places ? `.${text.slice(1)}` : ""), at];
  };
  const bare = (text) => (text.includes(".") ? text.replace(/\.?0+$/, "") : text);
  const general = (x, given) => {
    if (!Number.isFinite(x)) return unfinite(x);
    const places = given || 1;
    const [text, at] = scientific(x, places - 1);
    return at < -4 || at >= places ? bare(text) + power(at) : bare(fixed(x, places - 1 - at));
  };
  const shortest = (x) => {
    if (!Number.isFinite(x)) return unfinite(x);
    const [text, e] = Math.abs(x).toExponential().split("e");
    const [at, all] = [Number(e), text.replace(".", "")];
    if (!x) return `${sign(x)}0.0`;
    if (at < -4 || at >= 16) return sign(x) + (all.length > 1 ? `${all[0]}.${all.slice(1)}` : all) + power(at);
    if (at < 0) return `${sign(x)}0.${"0".repeat(-at - 1)}${all}`;
    return `${sign(x)}${all.slice(0, at + 1).padEnd(at + 1, "0")}.${all.slice(at + 1) || "0"}`;
  };
  const grouped = (text) => text.replace(/^(-?)(\d+)/, (_, minus, whole) => minus + whole.replace(/\B(?=(\d{3})+$)/g, ","));
  $.str = (x) => {
    if (typeof x === "string") return x;
    if (typeof x === "number") return shortest(x);
    if (typeof x === "boolean") return x ? "True" : "False";
    if (x === null) return "None";
    if (x instanceof Error) return x.message;
    if (Array.isArray(x)) return `(${x.map($.repr).join(", ")}${x.length === 1 ? "," : ""})`;
    if (ours(x)) return x.__str__ ? x.__str__() : x.__format__ ? x.__format__("") : String(x);
    return String(x);
  };
  $.str.maketrans = same;
  tests.set($.str, (x) => typeof x === "string");
  $.repr = (x) => (typeof x !== "string" ? $.str(x) : x.includes("'") && !x.includes('"') ? `"${x}"` : `'${x.replaceAll("\\", "\\\\").replaceAll("'", "\\'").replaceAll("\n", "\\n")}'`);
  const SPEC = /^(?:(.)?([<>^]))?(0)?(\d+)?(,)?(?:\.(\d+))?([defgs%])?$/;
  $.format = (x, spec) => {
    if (ours(x) && x.__format__) return x.__format__(spec);
    const [, fill, side, , width, comma, places, kind] = SPEC.exec(spec);
    let text = $.str(x);
    const value = typeof x === "string" ? 0 : $.float(x);
    const many = places === void 0 ? 6 : Number(places);
    if (kind === "f") text = fixed(value, many);
    else if (kind === "%") text = `${fixed(value * 100, many)}%`;
    else if (kind === "g") text = general(value, many);
    else if (kind === "e") text = scientific(value, many).reduce((number, at) => number + power(at));
    if (comma) text = grouped(text);
    const room = Number(width ?? 0);
    return (side ?? (typeof x === "string" ? "<" : ">")) === "<" ? text.padEnd(room, fill ?? " ") : text.padStart(room, fill ?? " ");
  };

  // --- methods of text, lists and numbers ---

  const strip = (text, of, ends) => {
    let [first, last] = [0, text.length];
    const is = (at) => (of === void 0 ? /\s/.test(text[at]) : of.includes(text[at]));
    while (ends[0] && first < last && is(first)) first += 1;
    while (ends[1] && last > first && is(last - 1)) last -= 1;
    return text.slice(first, last);
  };
  const parted = (text, at, by) => (at < 0 ? null : [text.slice(0, at), by, text.slice(at + by.length)]);
  const METHODS = {
    append: (list, x) => void list.push(x),
    extend: (list, more) => void list.push(...more),
    insert: (list, at, x) => void list.splice(Number(at), 0, x),
    pop: (list, at = -1n) => list.splice(Number(at), 1)[0],
    index: (list, x) => BigInt([...list].findIndex((each) => $.eq(each, x))),
    count: (list, x) => BigInt([...list].filter((each) => $.eq(each, x)).length),
    join: (by, texts) => [...texts].join(by),
    split: (text, by) => (by === void 0 ? text.trim().split(/\s+/).filter(Boolean) : text.split(by)),
    splitlines: (text) => text.split("\n"),
    strip: (text, of) => strip(text, of, [1, 1]),
    lstrip: (text, of) => strip(text, of, [1, 0]),
    rstrip: (text, of) => strip(text, of, [0, 1]),
    startswith: (text, start) => [start].flat().some((each) => text.startsWith(each)),
    endswith: (text, end) => [end].flat().some((each) => text.endsWith(each)),
    removeprefix: (text, start) => (text.startsWith(start) ? text.slice(start.length) : text),
    removesuffix: (text, end) => (text.endsWith(end) ? text.slice(0, text.length - end.length) : text),
    partition: (text, by) => parted(text, text.indexOf(by), by) ?? [text, "", ""],
    rpartition: (text, by) => parted(text, text.lastIndexOf(by), by) ?? ["", "", text],
    replace: (text, one, other) => text.replaceAll(one, other),
    find: (text, part) => BigInt(text.indexOf(part)),
    lower: (text) => text.toLowerCase(),
    casefold: (text) => text.toLowerCase(),
    upper: (text) => text.toUpperCase(),
    islower: (text) => text === text.toLowerCase() && text !== text.toUpperCase(),
    isdigit: (text) => /^\d+$/.test(text),
    isidentifier: (text) => /^[\p{L}_][\p{L}\p{N}_]*$/u.test(text),
    ljust: (text, width) => text.padEnd(Number(width)),
    rjust: (text, width) => text.padStart(Number(width)),
    translate: (text, table) => Array.from(text, (each) => table.get(each, each)).join(""),
    bit_length: (n) => (n ? BigInt((n < 0n ? -n : n).toString(2).length) : 0n),
    is_integer: (x) => Number.isInteger(x),
    format: (text, named) => text.replace(/\{(\w+)\}/g, (_, name) => $.str(named.get(name))),
  };
  $.m = (of, name, ...given) => (ours(of) && of[name] ? of[name](...given) : METHODS[name](of, ...given));

  // --- text that remembers what it was made of, to be said in another language ---

  const told = new Map();
  $.Told = raw((phrase) => phrase, ([phrase], named) => {
    const values = new Dict(named);
    const text = METHODS.format(phrase, values);
    told.set(text, [phrase, values]);
    return text;
  });
  $.said = (text, say) => {
    if (!told.has(text)) return $.str(text);
    const [phrase, values] = told.get(text);
    return METHODS.format(say(phrase), new Dict(values.items().map(([name, each]) => [name, $.said(each, say)])));
  };

  // --- modules ---

  const round = (make, how) => (x) => (typeof x === "number" ? BigInt(make(x)) : ours(x) ? how(x) : x);
  $.math = {
    inf: Infinity,
    isfinite: (x) => typeof x !== "number" || Number.isFinite(x),
    floor: round(Math.floor, (x) => $.down(x.numerator, x.denominator)),
    ceil: round(Math.ceil, (x) => -$.down(-x.numerator, x.denominator)),
    sqrt: (x) => Math.sqrt($.float(x)),
    exp: (x) => Math.exp($.float(x)),
    log2: (x) => Math.log2($.float(x)),
    prod: (values) => [...values].reduce((one, each) => $.mul(one, each), 1n),
  };
  const pattern = (text) => new RegExp(text.replaceAll("(?P<", "(?<"), "gu");
  const match = (found) => found && { __getitem__: (name) => (typeof name === "string" ? found.groups[name] : found[Number(name)]) ?? null };
  $.re = {
    compile: (text) => ({
      fullmatch: (of) => match(new RegExp(`^(?:${pattern(text).source})$`, "u").exec(of)),
      sub: (by, of) => of.replace(pattern(text), by),
      findall: (of) => of.match(pattern(text)) ?? [],
    }),
    sub: (text, by, of) => of.replace(pattern(text), by),
  };
  $.dedent = (text) => {
    const lines = text.split("\n").map((each) => (each.trim() ? each : ""));
    const depths = lines.filter(Boolean).map((each) => each.length - each.trimStart().length);
    return lines.map((each) => each.slice(Math.min(...depths))).join("\n");
  };
})(readerkitPython);

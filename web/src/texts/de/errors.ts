// What went wrong on this side, and the venue's reasons that a trader meets.

import type { drops as left, errors as en, reasons as known } from "../en/errors.ts";

export const reasons: typeof known = {
  1: { name: "Unbekanntes Konto", advice: "Dieses Konto gibt es nicht: prüfen Sie seine Nummer; Konten legt der Betreiber an." },
  2: { name: "Unbekanntes Instrument", advice: "Dieses Instrument gibt es nicht: nehmen Sie eines aus der Liste der Instrumente." },
  3: { name: "Unbekanntes Asset", advice: "Dieses Asset gibt es nicht: nehmen Sie eines aus der Liste der Assets." },
  4: {
    name: "Unbekannte Order",
    advice:
      "Keine offene Order dieses Kontos hat diese client_order_id: sie wurde ausgeführt, storniert oder nie angenommen; sehen " +
      "Sie in den Orders und Ausführungen nach.",
  },
  5: {
    name: "client_order_id vergeben",
    advice:
      "Eine offene Order dieses Kontos hat diese client_order_id schon: wählen Sie eine andere, oder stornieren Sie die erste.",
  },
  8: { name: "Konto gesperrt", advice: "Das Konto ist gesperrt: senden Sie nur Stornos, bis der Betreiber es wieder freigibt." },
  11: { name: "Unbekannter Batch-Markt", advice: "Diesen Batch-Markt gibt es nicht: nehmen Sie einen aus der Liste der Batch-Märkte." },
  12: {
    name: "Transaktion doppelt",
    advice:
      "Eine Transaktion dieses Kontos mit dieser Nummer ist schon gesammelt: warten Sie ihren Block ab, und geben Sie einer " +
      "anderen eine neue Nummer.",
  },
  20: { name: "Preis außerhalb des Bereichs", advice: "Der Preis liegt außerhalb des Bereichs: geben Sie 1 bis 1099511627775 Ticks an." },
  21: {
    name: "Menge außerhalb des Bereichs",
    advice:
      "Die Menge liegt außerhalb des Bereichs: geben Sie 1 bis 68719476735 Lots an, und teilen Sie Größeres auf.",
  },
  22: { name: "Wert zu groß", advice: "Preis mal Menge ist mehr, als ein Betrag sein kann: senden Sie eine kleinere Order." },
  23: {
    name: "Anzeige ungültig",
    advice:
      "So kann die Order nicht angezeigt werden: geben Sie einem Iceberg einen Peak von mindestens einem Lot und einem " +
      "Tausendstel der Menge, kleiner als die Menge; Iceberg und Hidden nur für Orders, die im Buch stehen können.",
  },
  24: {
    name: "Mindestmenge ungültig",
    advice:
      "Die Mindestmenge passt nicht zur Order: mindestens ein Lot, höchstens die Menge, und nicht bei Post-only und " +
      "Fill-or-Kill.",
  },
  25: {
    name: "Post-only ungültig",
    advice:
      "Post-only geht nur mit Limit-Orders, die im Buch stehen können: lassen Sie es weg, oder nehmen Sie eine andere " +
      "Gültigkeit als Immediate-or-Cancel und Fill-or-Kill.",
  },
  26: {
    name: "Gültigkeit ungültig",
    advice:
      "Eine Market-Order steht nicht im Buch: nehmen Sie Immediate-or-Cancel oder Fill-or-Kill (ein Stop darf mit jeder " +
      "Gültigkeit warten).",
  },
  27: { name: "Schon abgelaufen", advice: "Die Gültigkeit ist schon vorbei: geben Sie eine spätere Zeit an." },
  29: {
    name: "Änderung ungültig",
    advice:
      "Die Änderung passt nicht zur Order: geben Sie einen neuen Preis, Auslöser oder eine neue Menge an; einen Auslöser hat " +
      "nur ein wartender Stop, und einer ohne Limit hat keinen Preis.",
  },
  32: {
    name: "Nummer außer der Reihe",
    advice:
      "Die Nummer der Transaktion gehört nicht zu den 64, die auf die letzte des Kontos folgen: nehmen Sie die nächste.",
  },
  35: { name: "Anderer Batch-Markt", advice: "Die Transaktion nennt einen anderen Batch-Markt: senden Sie sie dorthin." },
  40: {
    name: "Phase nimmt keine Orders",
    advice:
      "Das Instrument ist geschlossen oder ausgesetzt: senden Sie nur Stornos, und warten Sie mit Orders auf die nächste Phase.",
  },
  41: {
    name: "Keine sofortige Ausführung",
    advice:
      "In dieser Phase wird nichts ausgeführt: warten Sie mit Market-, Immediate-or-Cancel-, Fill-or-Kill-Orders und " +
      "Mindestmengen auf den fortlaufenden Handel, oder senden Sie eine Order, die im Buch stehen kann.",
  },
  43: {
    name: "Post-only würde handeln",
    advice:
      "Die Order würde sofort ausgeführt: senken Sie ein Kauflimit, erhöhen Sie ein Verkaufslimit, oder erlauben Sie das " +
      "Nehmen.",
  },
  44: {
    name: "Fill-or-Kill nicht ausführbar",
    advice:
      "Das Orderbuch kann die Order jetzt nicht ganz ausführen: kleinere Menge, besserer Preis, oder Immediate-or-Cancel für " +
      "das, was da ist.",
  },
  45: {
    name: "Mindestmenge nicht ausführbar",
    advice:
      "Das Orderbuch kann die Mindestmenge jetzt nicht ausführen: senken Sie sie, geben Sie einen besseren Preis, oder lassen " +
      "Sie sie weg.",
  },
  46: {
    name: "Orderbuch voll",
    advice:
      "Das Orderbuch ist voll: stornieren Sie Orders, die Sie nicht brauchen, oder warten Sie, bis andere gehen.",
  },
  48: {
    name: "Preis außerhalb des Korridors",
    advice:
      "Das Limit liegt außerhalb des Preiskorridors des Instruments: er liegt um den letzten Trade, vor dem ersten um den " +
      "Referenzpreis, und um den Auslöser eines Stops.",
  },
  49: { name: "Batch-Markt geschlossen", advice: "Der Batch-Markt ist geschlossen: warten Sie, bis der Betreiber ihn öffnet." },
  50: { name: "Batch voll", advice: "Der Batch ist voll: senden Sie die Transaktion für den nächsten noch einmal." },
  60: {
    name: "Guthaben reicht nicht",
    advice:
      "Das verfügbare Guthaben deckt Wert und Gebühr der Order oder die Auszahlung nicht: weniger ordern, Orders stornieren, " +
      "die das Asset binden, oder einzahlen.",
  },
  61: {
    name: "Order zu groß",
    advice:
      "Die Order übersteigt die größte Menge des Kontos in diesem Instrument: teilen Sie sie, oder bitten Sie den Betreiber um " +
      "ein höheres Limit.",
  },
  62: {
    name: "Orderwert zu groß",
    advice:
      "Die Order übersteigt den größten Wert des Kontos in diesem Instrument: teilen Sie sie, oder bitten Sie den Betreiber um " +
      "ein höheres Limit.",
  },
  63: {
    name: "Zu viele offene Orders",
    advice:
      "Das Konto hat so viele offene Orders in diesem Instrument, wie es darf: stornieren Sie einige.",
  },
  64: {
    name: "Positionslimit",
    advice:
      "Ausgeführt würde die Order die Position über ihr Limit bringen: kleinere Menge, offene Orders dieser Seite stornieren, " +
      "oder den Betreiber um ein höheres Limit bitten.",
  },
  67: {
    name: "Kein Transaktionsschlüssel",
    advice:
      "Das Konto hat keinen Schlüssel für Transaktionen: bitten Sie den Betreiber um einen.",
  },
  90: {
    name: "Stop würde sofort auslösen",
    advice:
      "Der letzte Trade hat den Auslöser berührt, die Order würde also nicht warten: Auslöser von Kauf-Stop und " +
      "Verkaufs-Take-Profit über den letzten Preis, von Verkaufs-Stop und Kauf-Take-Profit darunter, oder eine Limit- oder " +
      "Market-Order senden.",
  },
  91: {
    name: "Prüfung zu tief",
    advice:
      "Die Order träfe auf mehr als 1024 Orders im Buch (oder 4096 Preise), bevor feststeht, ob sie ganz oder bis zur " +
      "Mindestmenge ausführbar ist: kleinere Order, kleinere Mindestmenge, oder Immediate-or-Cancel.",
  },
  92: {
    name: "Orderbuch beschäftigt",
    advice:
      "Das Orderbuch führt noch einen früheren Auftrag in Schritten aus: es ist nichts geschehen; senden Sie gleich noch " +
      "einmal.",
  },
  93: {
    name: "Verbindung ungültig",
    advice:
      "Die Order kann nicht mit jener verbunden werden: nennen Sie eine offene Order des Kontos im Instrument mit gleicher " +
      "Seite und offener Menge, verbinden Sie keine zweimal, und lassen Sie mindestens eine auf einen Auslöser warten; eine " +
      "Limit-Order, die verbunden eingeht, ist Post-only. Ein Exit ist einer von zweien, ein Stop oder Take-Profit, kommt vor " +
      "seiner Einstiegsorder und hat die andere Seite und die gleiche Menge.",
  },
  94: {
    name: "Verbundene Order steht fest",
    advice:
      "Eine verbundene Order lässt sich nicht ändern, und eine mit Exits nicht in der Menge: stornieren Sie sie, was die " +
      "verbundenen mit storniert, und senden Sie alle neu.",
  },
  102: { name: "Nicht angemeldet", advice: "Kein gültiger Schlüssel mit Signatur: melden Sie sich mit einem Schlüssel an." },
  103: {
    name: "Unbekannter Schlüssel",
    advice:
      "Diesen API-Schlüssel gibt es nicht: prüfen Sie ihn; wurde er widerrufen, bitten Sie den Betreiber um einen anderen.",
  },
  104: { name: "Signatur ungültig", advice: "Die Signatur passt nicht zur Anfrage: prüfen Sie das Geheimnis des Schlüssels." },
  105: {
    name: "Zeitstempel veraltet",
    advice:
      "Der Zeitstempel der Anfrage liegt zu weit von der Uhr des Gateways, oder vor dem ersten, den es nach einem Neustart " +
      "annimmt: stellen Sie die Uhr und melden Sie sich noch einmal an.",
  },
  106: { name: "Nonce verbraucht", advice: "Diese Nonce wurde schon benutzt: eine Anfrage gilt einmal." },
  107: { name: "Gedrosselt", advice: "Zu viele Anfragen: langsamer, und dann noch einmal." },
  108: { name: "Nicht erlaubt", advice: "Der Schlüssel oder die Sitzung darf das nicht: nehmen Sie einen mit der Berechtigung." },
  110: { name: "Noch nicht bereit", advice: "Der Handelsplatz startet oder stellt sich wieder her: versuchen Sie es noch einmal." },
  111: {
    name: "Speicher voll",
    advice:
      "Der Handelsplatz kann sein Log nicht schreiben und nimmt nichts an: sagen Sie dem Betreiber Bescheid.",
  },
  112: { name: "Überlastet", advice: "Die Warteschlange des Handelsplatzes ist voll: versuchen Sie es noch einmal." },
  113: { name: "Preis nicht auf dem Tick", advice: "Der Preis ist keine ganze Zahl von Ticks: sehen Sie tick_size des Instruments nach." },
  114: { name: "Menge nicht auf dem Lot", advice: "Die Menge ist keine ganze Zahl von Lots: sehen Sie lot_size des Instruments nach." },
  115: { name: "Zu viele Nachkommastellen", advice: "Der Betrag hat mehr Nachkommastellen als das Asset." },
  116: { name: "Nicht der Leader", advice: "Ein anderes Replikat nimmt Aufträge an: senden Sie dorthin, oder nach der Wahl noch einmal." },
};

export const drops: typeof left = {
  2: { name: "Konto gesperrt", advice: "das Konto ist gesperrt: fragen Sie den Betreiber" },
  3: { name: "Nummer doppelt", advice: "zwei Transaktionen des Kontos haben dieselbe Nummer: geben Sie jeder eine eigene" },
  4: {
    name: "Nummer außer der Reihe",
    advice:
      "die Nummer gehört nicht zu den 64, die auf die letzte des Kontos folgen: nehmen Sie die nächste",
  },
  9: { name: "Nicht ausführbar", advice: "Limit mal Menge ist mehr, als ein Betrag sein kann: senken Sie das Limit" },
  10: { name: "Unbekanntes Angebot", advice: "dort steht kein Angebot des Kontos unter diesem Schlüssel: es kann ausgeführt worden sein" },
  11: { name: "Storno doppelt", advice: "zwei Transaktionen stornieren dasselbe Angebot: senden Sie eine" },
  18: {
    name: "Überziehung",
    advice:
      "die Transaktionen des Kontos geben mehr aus, als zu Beginn des Blocks verfügbar war: geben Sie weniger aus, oder zahlen " +
      "Sie vorher ein",
  },
};

export const errors: typeof en = {
  plainNumber: "Schreiben Sie eine einfache Zahl wie 61234,5: Ziffern und höchstens ein Komma.",
  wholeNumber: "Schreiben Sie hier eine ganze Zahl.",
  digits: (most) => `Höchstens ${most} Stellen nach dem Komma.`,
  bothAboveZero: "Beide müssen über null liegen.",
  limitAboveZero: "Ein Limit liegt über null. Um jeden Preis anzunehmen, wählen Sie „Jeder Preis“.",
  noSuchPrice: "Zu einem solchen Preis wird kein Markt abgerechnet: wählen Sie einen näher an denen oben.",
  keyShape:
    "Ein Schlüssel sieht aus wie hm_name.secret oder ed_name.secret: kopieren Sie ihn ganz, wie der Handelsplatz ihn ausgab, " +
    "oder dessen Adresse mit #demo=.",
  keyCut: "Das Geheimnis ist abgeschnitten: kopieren Sie den Schlüssel ganz.",
  keyLength: "Das Geheimnis eines Ed25519-Schlüssels hat 43 Zeichen: kopieren Sie den Schlüssel ganz.",
  noEd25519:
    "Dieser Browser kann nicht mit Ed25519 signieren: nehmen Sie Chrome 137, Edge 137, Firefox 129, Safari 17 oder neuer, über " +
    "https oder auf diesem Rechner.",
  notEd25519: "Transaktionen werden mit Ed25519 signiert: nehmen Sie einen Schlüssel, dessen Name mit ed_ beginnt.",
  notConnected:
    "Keine Verbindung zum Handelsplatz: es wurde nichts gesendet. Warten Sie auf die Verbindung und versuchen Sie es noch " +
    "einmal.",
  outcomeUnknown:
    "Die Verbindung brach ab, bevor der Handelsplatz antwortete. Er kann den Auftrag angenommen haben: sehen Sie bei den " +
    "offenen Orders nach.",
  outcomeUnknownOffer:
    "Die Verbindung brach ab, bevor der Handelsplatz antwortete. Er kann die Transaktion angenommen haben: sehen Sie bei Ihren " +
    "Angeboten nach.",
  noResult: (path) =>
    `Die Antwort des Handelsplatzes auf ${path} hat kein Ergebnis: laden Sie die Seite neu, um die Fassung des Handelsplatzes ` +
    "zu bekommen.",
  noReason: (path, status) => `Der Handelsplatz antwortete auf ${path} mit Status ${status} und ohne Grund: sehen Sie in sein Log.`,
  clockBack: (seconds) =>
    "Die Uhr des Handelsplatzes wurde zurückgestellt, und bis sie aufgeholt hat, gilt kein Schlüssel: melden Sie sich in " +
    `${seconds} s noch einmal an, oder fragen Sie den Betreiber.`,
};

//! The PGP word list (Juola and Zimmermann, 1996): for each byte a word of two syllables and one of
//! three, chosen so that they are told apart by ear. It decides nothing.

/// For bytes at even places, counted from 0: two syllables.
#[rustfmt::skip]
pub(super) const EVEN: [&str; 256] = [
    "aardvark", "absurd", "accrue", "acme", "adrift", "adult", "afflict", "ahead", // 0x00
    "aimless", "Algol", "allow", "alone", "ammo", "ancient", "apple", "artist", // 0x08
    "assume", "Athens", "atlas", "Aztec", "baboon", "backfield", "backward", "banjo", // 0x10
    "beaming", "bedlamp", "beehive", "beeswax", "befriend", "Belfast", "berserk", "billiard", // 0x18
    "bison", "blackjack", "blockade", "blowtorch", "bluebird", "bombast", "bookshelf", "brackish", // 0x20
    "breadline", "breakup", "brickyard", "briefcase", "Burbank", "button", "buzzard", "cement", // 0x28
    "chairlift", "chatter", "checkup", "chisel", "choking", "chopper", "Christmas", "clamshell", // 0x30
    "classic", "classroom", "cleanup", "clockwork", "cobra", "commence", "concert", "cowbell", // 0x38
    "crackdown", "cranky", "crowfoot", "crucial", "crumpled", "crusade", "cubic", "dashboard", // 0x40
    "deadbolt", "deckhand", "dogsled", "dragnet", "drainage", "dreadful", "drifter", "dropper", // 0x48
    "drumbeat", "drunken", "Dupont", "dwelling", "eating", "edict", "egghead", "eightball", // 0x50
    "endorse", "endow", "enlist", "erase", "escape", "exceed", "eyeglass", "eyetooth", // 0x58
    "facial", "fallout", "flagpole", "flatfoot", "flytrap", "fracture", "framework", "freedom", // 0x60
    "frighten", "gazelle", "Geiger", "glitter", "glucose", "goggles", "goldfish", "gremlin", // 0x68
    "guidance", "hamlet", "highchair", "hockey", "indoors", "indulge", "inverse", "involve", // 0x70
    "island", "jawbone", "keyboard", "kickoff", "kiwi", "klaxon", "locale", "lockup", // 0x78
    "merit", "minnow", "miser", "Mohawk", "mural", "music", "necklace", "Neptune", // 0x80
    "newborn", "nightbird", "Oakland", "obtuse", "offload", "optic", "orca", "payday", // 0x88
    "peachy", "pheasant", "physique", "playhouse", "Pluto", "preclude", "prefer", "preshrunk", // 0x90
    "printer", "prowler", "pupil", "puppy", "python", "quadrant", "quiver", "quota", // 0x98
    "ragtime", "ratchet", "rebirth", "reform", "regain", "reindeer", "rematch", "repay", // 0xa0
    "retouch", "revenge", "reward", "rhythm", "ribcage", "ringbolt", "robust", "rocker", // 0xa8
    "ruffled", "sailboat", "sawdust", "scallion", "scenic", "scorecard", "Scotland", "seabird", // 0xb0
    "select", "sentence", "shadow", "shamrock", "showgirl", "skullcap", "skydive", "slingshot", // 0xb8
    "slowdown", "snapline", "snapshot", "snowcap", "snowslide", "solo", "southward", "soybean", // 0xc0
    "spaniel", "spearhead", "spellbind", "spheroid", "spigot", "spindle", "spyglass", "stagehand", // 0xc8
    "stagnate", "stairway", "standard", "stapler", "steamship", "sterling", "stockman", "stopwatch", // 0xd0
    "stormy", "sugar", "surmount", "suspense", "sweatband", "swelter", "tactics", "talon", // 0xd8
    "tapeworm", "tempest", "tiger", "tissue", "tonic", "topmost", "tracker", "transit", // 0xe0
    "trauma", "treadmill", "Trojan", "trouble", "tumor", "tunnel", "tycoon", "uncut", // 0xe8
    "unearth", "unwind", "uproot", "upset", "upshot", "vapor", "village", "virus", // 0xf0
    "Vulcan", "waffle", "wallet", "watchword", "wayside", "willow", "woodlark", "Zulu", // 0xf8
];

/// For bytes at odd places: three syllables.
#[rustfmt::skip]
pub(super) const ODD: [&str; 256] = [
    "adroitness", "adviser", "aftermath", "aggregate", "alkali", "almighty", "amulet", "amusement", // 0x00
    "antenna", "applicant", "Apollo", "armistice", "article", "asteroid", "Atlantic", "atmosphere", // 0x08
    "autopsy", "Babylon", "backwater", "barbecue", "belowground", "bifocals", "bodyguard", "bookseller", // 0x10
    "borderline", "bottomless", "Bradbury", "bravado", "Brazilian", "breakaway", "Burlington", "businessman", // 0x18
    "butterfat", "Camelot", "candidate", "cannonball", "Capricorn", "caravan", "caretaker", "celebrate", // 0x20
    "cellulose", "certify", "chambermaid", "Cherokee", "Chicago", "clergyman", "coherence", "combustion", // 0x28
    "commando", "company", "component", "concurrent", "confidence", "conformist", "congregate", "consensus", // 0x30
    "consulting", "corporate", "corrosion", "councilman", "crossover", "crucifix", "cumbersome", "customer", // 0x38
    "Dakota", "decadence", "December", "decimal", "designing", "detector", "detergent", "determine", // 0x40
    "dictator", "dinosaur", "direction", "disable", "disbelief", "disruptive", "distortion", "document", // 0x48
    "embezzle", "enchanting", "enrollment", "enterprise", "equation", "equipment", "escapade", "Eskimo", // 0x50
    "everyday", "examine", "existence", "exodus", "fascinate", "filament", "finicky", "forever", // 0x58
    "fortitude", "frequency", "gadgetry", "Galveston", "getaway", "glossary", "gossamer", "graduate", // 0x60
    "gravity", "guitarist", "hamburger", "Hamilton", "handiwork", "hazardous", "headwaters", "hemisphere", // 0x68
    "hesitate", "hideaway", "holiness", "hurricane", "hydraulic", "impartial", "impetus", "inception", // 0x70
    "indigo", "inertia", "infancy", "inferno", "informant", "insincere", "insurgent", "integrate", // 0x78
    "intention", "inventive", "Istanbul", "Jamaica", "Jupiter", "leprosy", "letterhead", "liberty", // 0x80
    "maritime", "matchmaker", "maverick", "Medusa", "megaton", "microscope", "microwave", "midsummer", // 0x88
    "millionaire", "miracle", "misnomer", "molasses", "molecule", "Montana", "monument", "mosquito", // 0x90
    "narrative", "nebula", "newsletter", "Norwegian", "October", "Ohio", "onlooker", "opulent", // 0x98
    "Orlando", "outfielder", "Pacific", "pandemic", "Pandora", "paperweight", "paragon", "paragraph", // 0xa0
    "paramount", "passenger", "pedigree", "Pegasus", "penetrate", "perceptive", "performance", "pharmacy", // 0xa8
    "phonetic", "photograph", "pioneer", "pocketful", "politeness", "positive", "potato", "processor", // 0xb0
    "provincial", "proximate", "puberty", "publisher", "pyramid", "quantity", "racketeer", "rebellion", // 0xb8
    "recipe", "recover", "repellent", "replica", "reproduce", "resistor", "responsive", "retraction", // 0xc0
    "retrieval", "retrospect", "revenue", "revival", "revolver", "sandalwood", "sardonic", "Saturday", // 0xc8
    "savagery", "scavenger", "sensation", "sociable", "souvenir", "specialist", "speculate", "stethoscope", // 0xd0
    "stupendous", "supportive", "surrender", "suspicious", "sympathy", "tambourine", "telephone", "therapist", // 0xd8
    "tobacco", "tolerance", "tomorrow", "torpedo", "tradition", "travesty", "trombonist", "truncated", // 0xe0
    "typewriter", "ultimate", "undaunted", "underfoot", "unicorn", "unify", "universe", "unravel", // 0xe8
    "upcoming", "vacancy", "vagabond", "vertigo", "Virginia", "visitor", "vocalist", "voyager", // 0xf0
    "warranty", "Waterloo", "whimsical", "Wichita", "Wilmington", "Wyoming", "yesteryear", "Yucatan", // 0xf8
];
